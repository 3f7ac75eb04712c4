// The actuator that sets the power limit of whole processors in Linux's powercap (Intel RAPL, and
// AMD where the kernel supports it there).
#pragma once

#include <memory>

#include "governor/actuator.hpp"
#include "sys/kernel.hpp"

namespace diapause::governor {

// Sets the long-term limit of every package to `ratio` of its rated power
// (constraint_N_max_power_uw, or else the present limit). The processor then finds a clock below
// that limit by itself within about a second. `sysfs` is where /sys is mounted.
std::unique_ptr<Planner> plan_powercap(sys::Kernel& kernel, std::string sysfs);

}  // namespace diapause::governor
