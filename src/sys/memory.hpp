// Determines how much memory the machine has left, and reads this process's own memory when it may
// be unmapped at any time.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "sys/kernel.hpp"

namespace diapause::sys {

// This is the memory that a machine, or a control group of this process, grants its programs.
struct MemoryRoom {
  std::uint64_t limit = 0;  // in bytes, like `left`
  std::uint64_t left = 0;   // can be taken without swapping, or without reaching the limit
};

// Returns the memory of this machine: MemTotal and MemAvailable of /proc/meminfo.
Result<MemoryRoom> memory_of_machine(Kernel& kernel);

// Copies memory of this process that other threads may unmap at any time. Returns Code::io where
// memcpy would crash. `to` and `from` have the same size. It takes half as long again as memcpy,
// and is a memcpy in sandboxes that forbid the system call.
Status copy_if_mapped(MutableBytes to, ByteView from);

}  // namespace diapause::sys
