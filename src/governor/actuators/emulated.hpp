// Emulates a lower clock: each thread is in a control group that gives it that share of a core's
// time. It serves to try out the governor on machines whose clock cannot be set. Computing threads
// really take longer by 1 / ratio, but the power stays the same, so energy measured meanwhile is
// meaningless. Its niceness counts against all other threads, as before.
//
// Unlike a lower clock, it slows neither a thread that waits for more of its time than the ratio
// leaves it, nor any thread if threads outnumber the cores.
#pragma once

#include <memory>

#include "governor/actuator.hpp"
#include "sys/kernel.hpp"

namespace diapause::governor {

// Where control groups lie, and for whom they are made.
struct GroupPlaces {
  std::string sysfs;       // where /sys is mounted
  std::string own_groups;  // the content of /proc/self/cgroup
  Owner owner;
};

// Makes the groups when they are first needed, next to the group of `owner`. Controls removes them
// when it is told to. `controls` must outlive the planner.
std::unique_ptr<Planner> plan_emulated(sys::Kernel& kernel, GroupPlaces places, Controls& controls);

}  // namespace diapause::governor
