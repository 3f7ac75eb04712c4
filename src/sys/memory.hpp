// What memory the machine has left, and reading this process's own when it may go at any time.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "sys/kernel.hpp"

namespace diapause::sys {

// What a machine, or a control group of this process, lets its programs have.
struct MemoryRoom {
  std::uint64_t limit = 0;  // in bytes, as `left`
  std::uint64_t left = 0;   // can be taken without swapping, or without meeting the limit
};

// Of this machine: MemTotal and MemAvailable of /proc/meminfo.
Result<MemoryRoom> memory_of_machine(Kernel& kernel);

// Copies memory of this process that other threads may unmap at any time: Code::io where memcpy would crash. Half again
// as slow; a memcpy in sandboxes that forbid the call. Sizes are equal.
Status copy_if_mapped(MutableBytes to, ByteView from);

}  // namespace diapause::sys
