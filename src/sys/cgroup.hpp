// What the control groups that this process runs in still let it take.
#pragma once

#include <cstdint>
#include <optional>

#include "sys/kernel.hpp"

namespace diapause::sys {

// Bytes of memory until a limit is met, the least of all groups up to the root: who goes beyond is killed. What a group
// holds of files without needing it counts as free. Version 1 and 2; nothing where there is no limit, or none to be
// read. Reads /proc and /sys through `kernel`.
std::optional<std::uint64_t> cgroup_room_bytes(Kernel& kernel);

}  // namespace diapause::sys
