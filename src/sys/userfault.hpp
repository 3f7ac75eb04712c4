// Write protection of this process's own memory by userfaultfd, without signals and without changing mappings.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "sys/mappings.hpp"

namespace diapause::sys {

// One userfaultfd. protect, release and wait_for_writers are safe to call from several threads at once.
class Userfault {
 public:
  enum class Mode {
    // A write to a protected page waits until the page is released, also a write by a system call. Needs Linux 6.4 and
    // root, CAP_SYS_PTRACE, vm.unprivileged_userfaultfd=1 or access to /dev/userfaultfd: otherwise Code::denied.
    stop_writers,
    // The kernel releases the page and lets the write go on; PageScan tells later. Needs Linux 6.7 and no privilege.
    note_writes
  };
  // Code::denied or Code::io with what would help.
  static Result<Userfault> open(Mode mode);

  Userfault(Userfault&& other) noexcept;
  Userfault& operator=(Userfault&&) = delete;
  // Does not release memory: a forked child may hold the descriptor open. remove() first.
  ~Userfault();

  // Makes a range of private anonymous memory known; nothing is protected yet. Fails with EBUSY in os_errno where
  // another userfaultfd has the range.
  Status add(PageRange range) const;
  // Releases the range and forgets it. Of no effect where the memory is gone.
  void remove(PageRange range) const;

  // From the return on, writes to the range are stopped or noted, also to pages that do not exist yet. os_errno is
  // ENOENT where the range is not known.
  Status protect(PageRange range) const;
  // Ends the protection and wakes the writers that wait in the range.
  Status release(PageRange range) const;

  // Waits for writers; fills in the addresses that they wait at and returns how many. 0: interrupt() was called.
  Result<std::size_t> wait_for_writers(std::span<std::uintptr_t> addresses) const;
  // Ends every present and later wait.
  void interrupt() const;

 private:
  Userfault(int fd, int wake_fd) : fd_(fd), wake_fd_(wake_fd) {}
  int fd_;
  int wake_fd_;
};

}  // namespace diapause::sys
