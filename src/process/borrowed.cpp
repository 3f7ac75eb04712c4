#include "process/borrowed.hpp"

#include <fmt/core.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace diapause::process {

Result<Borrowed> Borrowed::of(pid_t process, int number) {
  const auto handle = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  if (handle < 0) return fail(os_error(fmt::format("opening process {}", process), errno));
  const auto borrowed = static_cast<int>(::syscall(SYS_pidfd_getfd, handle, number, 0));
  const int error = errno;
  ::close(handle);
  if (borrowed < 0)
    return fail(
        os_error(fmt::format("borrowing descriptor {} of process {}", number, process), error));
  return Borrowed(borrowed);
}

Borrowed::~Borrowed() {
  if (number_ >= 0) ::close(number_);
}

}  // namespace diapause::process
