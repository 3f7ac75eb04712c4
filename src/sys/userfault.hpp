// Write-protects this process's own memory with userfaultfd, without signals and without changes of
// mappings.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "sys/mappings.hpp"

namespace diapause::sys {

// This is one userfaultfd. protect(), release() and wait_for_writers() are safe to call from
// several threads at once.
class Userfault {
 public:
  enum class Mode {
    // A write to a protected page, also by a system call, waits until the page is released. This
    // needs Linux 6.4 and root, CAP_SYS_PTRACE, vm.unprivileged_userfaultfd=1 or access to
    // /dev/userfaultfd, and fails with Code::denied otherwise.
    stop_writers,
    // The kernel releases the page and lets the write continue; PageScan reports it later. This
    // needs Linux 6.7 and no privilege.
    note_writes
  };
  // Returns Code::denied or Code::io, with what would help.
  static Result<Userfault> open(Mode mode);

  Userfault(Userfault&& other) noexcept;
  Userfault& operator=(Userfault&&) = delete;
  // The destructor does not release memory, because a forked child may hold the descriptor open.
  // Call remove() first.
  ~Userfault();

  // Registers a range of private anonymous memory; nothing is protected yet. Fails with EBUSY in
  // os_errno if another userfaultfd has the range.
  Status add(PageRange range) const;
  // Releases the range and unregisters it. It has no effect if the memory is gone.
  void remove(PageRange range) const;

  // After the return, writes to the range are stopped or noted, also to pages that do not exist
  // yet. Fails with ENOENT in os_errno if the range is not registered.
  Status protect(PageRange range) const;
  // Ends the protection and wakes the writers that wait in the range.
  Status release(PageRange range) const;

  // Waits for writers. Stores the addresses that they wait at and returns how many; 0 if
  // interrupt() was called.
  Result<std::size_t> wait_for_writers(std::span<std::uintptr_t> addresses) const;
  // Ends every present and later wait.
  void interrupt() const;

 private:
  Userfault(int fd, int wake_fd) : fd_(fd), wake_fd_(wake_fd) {}
  int fd_;
  int wake_fd_;
};

}  // namespace diapause::sys
