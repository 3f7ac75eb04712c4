// Who may write into memory of this process without a page fault, or with one that cannot wait.
#pragma once

#include <string>

namespace diapause::sys {

// Found by what this process has open and by what the kernel counts. Empty texts: nobody.
struct UnseenWriters {
  // Pages that were pinned before they are protected are written past the protection: by io_uring, by asynchronous
  // direct I/O that is under way, by a driver.
  std::string past_protection;
  // Writes that the kernel makes for a debugger or through /proc/<process>/mem fail (EIO) where they would have to
  // wait.
  std::string cannot_wait;
};

// What is pinned after this was asked has to fault first, and is seen. Takes some microseconds for each file that this
// process has open. `process` stands for /proc/self, in tests. What cannot be asked counts as a writer.
UnseenWriters find_unseen_writers(const std::string& process = "/proc/self");

// For our own rings, whose buffers are never the program's memory: they are no writers.
void mark_own_ring(int fd);

}  // namespace diapause::sys
