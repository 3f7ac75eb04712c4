// What the machine has left.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "sys/kernel.hpp"

namespace diapause::sys {

// MemAvailable of /proc/meminfo: what can be taken without swapping.
Result<std::uint64_t> available_memory_bytes(Kernel& kernel);

}  // namespace diapause::sys
