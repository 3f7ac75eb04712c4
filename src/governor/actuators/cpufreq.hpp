// The actuator that sets the clock limit of Linux's cpufreq for each group of cores (a "policy").
#pragma once

#include <memory>

#include "governor/actuator.hpp"
#include "sys/kernel.hpp"

namespace diapause::governor {

// Sets scaling_max_freq, which every driver has. If that must not be written, sets
// scaling_setspeed, which only the governor `userspace` accepts. The base clock is the driver's
// (base_frequency, or the nominal frequency of ACPI), or else cpuinfo_max_freq: limits between the
// base clock and the highest turbo clock would have no effect. If the driver lists clocks, the next
// one below the wanted clock is used. `sysfs` is where /sys is mounted.
std::unique_ptr<Planner> plan_cpufreq(sys::Kernel& kernel, std::string sysfs);

}  // namespace diapause::governor
