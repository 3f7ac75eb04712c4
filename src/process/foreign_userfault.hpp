// Has a userfaultfd of another process. The process makes it for us while it stands still, and has
// no descriptor of it.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "process/calls.hpp"
#include "process/proc.hpp"

namespace diapause::process {

class ForeignUserfault {
 public:
  // With note_writes a page scan tells which pages were written (Linux 6.7, no privilege). With
  // give_pages whoever touches a page that is not there waits until it is given one, also in a
  // system call, and the kernel tells what the process does to its memory (CAP_SYS_PTRACE).
  enum class Use { note_writes, give_pages };
  // `thread` is of the process, stands still, and has `calls`. Fails if the kernel cannot do it, or
  // forbids it.
  static Result<ForeignUserfault> open(const Calls& calls, const ThreadName& thread, Use use);
  // Returns one that the kernel has made for a forked process.
  static ForeignUserfault of_forked(int fd) { return ForeignUserfault(fd, Use::give_pages); }
  ForeignUserfault(ForeignUserfault&& other) noexcept;
  ForeignUserfault& operator=(ForeignUserfault&& other) noexcept;
  ~ForeignUserfault();  // all that it watches is as before

  // Watches whole mappings from now on, also if it does already. Fails with EBUSY in os_errno if
  // another userfaultfd has one of them, and with another error if the process has not this memory
  // any more (it may have another one, by exec), or if memory of that kind cannot be watched.
  Status watch(const Extent& range) const;
  int fd() const { return fd_; }

 private:
  ForeignUserfault(int fd, Use use) : fd_(fd), use_(use) {}
  int fd_;
  Use use_;
};

}  // namespace diapause::process
