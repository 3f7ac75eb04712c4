// What memory the machine has left, and reading this process's own when it may go at any time.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "sys/kernel.hpp"

namespace diapause::sys {

// MemAvailable of /proc/meminfo: what can be taken without swapping.
Result<std::uint64_t> available_memory_bytes(Kernel& kernel);

// Copies memory of this process that other threads may unmap at any time: Code::io where memcpy would crash. Half again
// as slow; a memcpy in sandboxes that forbid the call. Sizes are equal.
Status copy_if_mapped(MutableBytes to, ByteView from);

}  // namespace diapause::sys
