// Reads the limits and use of the control groups that this process runs in.
#pragma once

#include <string_view>
#include <vector>

#include "sys/kernel.hpp"
#include "sys/memory.hpp"

namespace diapause::sys {

// This is a control group that a process is in. Both parts point into the text that they are from.
struct ControlGroup {
  std::string_view controllers;  // "cpu,cpuacct", or nothing in version 2 of control groups
  std::string_view path;         // from the mount on, "/job/step", or nothing for the mount itself
};
// Returns the groups that the text of a file /proc/<pid>/cgroup names.
std::vector<ControlGroup> control_groups_in(std::string_view text);
// Returns the path of the group above the one at `path`, which is not the mount itself.
std::string_view group_above(std::string_view path);

// Returns the memory of all groups up to the root that have a limit; a process that exceeds one is
// killed. Reclaimable file cache of a group counts as left. Supports versions 1 and 2. The result
// is empty where there is no limit or none can be read. Reads /proc and /sys through `kernel`.
std::vector<MemoryRoom> memory_of_cgroups(Kernel& kernel);

}  // namespace diapause::sys
