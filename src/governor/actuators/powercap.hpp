// The power limit of whole processors that Linux's powercap keeps (Intel RAPL, and AMD where the kernel serves it so).
#pragma once

#include <memory>

#include "governor/actuator.hpp"
#include "sys/kernel.hpp"

namespace diapause::governor {

// Sets the long-term limit of every package to `ratio` of the power it is made for (constraint_N_max_power_uw, else the
// limit that stands there). The processor looks for a clock below that limit by itself, within about a second. `sysfs`
// is where /sys is mounted.
std::unique_ptr<Planner> plan_powercap(sys::Kernel& kernel, std::string sysfs);

}  // namespace diapause::governor
