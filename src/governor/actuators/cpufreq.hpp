// The limit of the clock that Linux's cpufreq keeps for each group of cores (a "policy").
#pragma once

#include <memory>

#include "governor/actuator.hpp"
#include "sys/kernel.hpp"

namespace diapause::governor {

// Sets scaling_max_freq, which every driver has; where it may not be written, scaling_setspeed, which only the governor
// `userspace` takes. The base clock is what the driver says it is (base_frequency, or the nominal frequency of ACPI),
// else cpuinfo_max_freq: limits between that and the highest turbo clock would change nothing. A clock that the driver
// lists is taken, the next one below what is wanted. `sysfs` is where /sys is mounted.
std::unique_ptr<Planner> plan_cpufreq(sys::Kernel& kernel, std::string sysfs);

}  // namespace diapause::governor
