// A lower clock, emulated: each thread is in a control group that gives it that share of a core's time. For machines
// whose clock cannot be set, to try the rest of the governor on: threads that compute really take longer by 1 / ratio.
// Power is not: it stays what it was, so no energy measured meanwhile means anything.
//
// Unlike a lower clock, it does not slow a thread that waits for more of its time than the ratio leaves it, and no
// thread where threads outnumber the cores.
#pragma once

#include <memory>

#include "governor/actuator.hpp"
#include "sys/kernel.hpp"

namespace diapause::governor {

// Where control groups lie and who asks.
struct GroupPlaces {
  std::string sysfs;       // where /sys is mounted
  std::string own_groups;  // what /proc/self/cgroup says
  Owner owner;
};

// Makes the groups when they are needed first, next to `owner`'s own; Controls takes them away when it is told to.
// `controls` must outlive it.
std::unique_ptr<Planner> plan_emulated(sys::Kernel& kernel, GroupPlaces places, Controls& controls);

}  // namespace diapause::governor
