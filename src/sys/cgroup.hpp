// Reads the limits and use of the control groups that this process runs in.
#pragma once

#include <vector>

#include "sys/kernel.hpp"
#include "sys/memory.hpp"

namespace diapause::sys {

// Returns the memory of all groups up to the root that have a limit; a process that exceeds one is
// killed. Reclaimable file cache of a group counts as left. Supports versions 1 and 2. The result
// is empty where there is no limit or none can be read. Reads /proc and /sys through `kernel`.
std::vector<MemoryRoom> memory_of_cgroups(Kernel& kernel);

}  // namespace diapause::sys
