// Finds writers to this process's memory that cause no page fault, or one that cannot wait.
#pragma once

#include <string>

namespace diapause::sys {

// The texts name such writers; they are empty if there is none. They are found by the files that
// this process has open and by counters of the kernel.
struct UnseenWriters {
  // These writers bypass a later protection because they have pinned pages: io_uring, asynchronous
  // direct I/O in progress, a driver.
  std::string past_protection;
  // These writers fail (EIO) where they would have to wait: the kernel writes for a debugger or
  // through /proc/<process>/mem.
  std::string cannot_wait;
};

// Pages that are pinned after this call have to fault first and are therefore noticed. The call
// takes some microseconds for each file that this process has open. `process` replaces /proc/self
// in tests. If something cannot be checked, it counts as a writer.
UnseenWriters find_unseen_writers(const std::string& process = "/proc/self");

// Marks a ring of the library, which is then no writer: its buffers are never the program's memory.
void mark_own_ring(int fd);

}  // namespace diapause::sys
