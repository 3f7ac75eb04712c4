// What the control groups that this process runs in still let it take.
#pragma once

#include <vector>

#include "sys/kernel.hpp"
#include "sys/memory.hpp"

namespace diapause::sys {

// The memory of all groups up to the root that have a limit: who goes beyond is killed. What a group holds of files
// without needing it counts as left. Version 1 and 2; nothing where there is no limit, or none to be read. Reads /proc
// and /sys through `kernel`.
std::vector<MemoryRoom> memory_of_cgroups(Kernel& kernel);

}  // namespace diapause::sys
