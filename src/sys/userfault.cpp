#include "sys/userfault.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "sys/robust.hpp"

namespace diapause::sys {
namespace {

// These constants are newer than the headers that this must build with.
constexpr std::uint64_t kFeatureWpUnpopulated = std::uint64_t{1} << 13;  // Linux 6.4
constexpr std::uint64_t kFeatureWpAsync = std::uint64_t{1} << 15;        // Linux 6.7
constexpr int kUserModeOnly = 1;                                         // Linux 5.11
constexpr unsigned long kNewUserfault = _IO(0xAA, 0x00);  // of /dev/userfaultfd, Linux 6.1

// Opens a descriptor that also stops writes made by system calls. Returns -errno on failure.
int open_for_system_calls() {
  const long fd = ::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
  if (fd >= 0) return static_cast<int>(fd);
  const int refused = errno;
  const int device = ::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
  if (device < 0) return -refused;
  const int made = ::ioctl(device, kNewUserfault, O_CLOEXEC | O_NONBLOCK);
  const int error = errno;
  ::close(device);
  return made >= 0 ? made : -error;
}

// Opens a descriptor for noting writes, which are never reported through it, whoever makes them.
int open_for_notes() {
  const long fd = ::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | kUserModeOnly);
  return fd >= 0 ? static_cast<int>(fd) : -errno;
}

Error refusal(Userfault::Mode mode, int error) {
  if (error == ENOSYS) return os_error("this kernel has no userfaultfd", error);
  if (mode == Userfault::Mode::note_writes || error != EPERM)
    return os_error("userfaultfd is refused", error);
  return os_error(
      "writes by system calls cannot be stopped: set vm.unprivileged_userfaultfd=1 or give access "
      "to /dev/userfaultfd",
      error);
}

uffdio_range range_of(PageRange range) { return {range.begin, range.bytes()}; }

Status change(int fd, PageRange range, std::uint64_t mode) {
  uffdio_writeprotect request{};
  request.range = range_of(range);
  request.mode = mode;
  while (::ioctl(fd, UFFDIO_WRITEPROTECT, &request) != 0) {
    if (errno == EAGAIN || errno == EINTR) continue;
    return fail(os_error(mode == 0 ? "cannot release memory" : "cannot protect memory", errno));
  }
  return {};
}

}  // namespace

Result<Userfault> Userfault::open(Mode mode) {
  const int fd = open_above_standard_streams(mode == Mode::stop_writers ? open_for_system_calls
                                                                        : open_for_notes);
  if (fd < 0) return fail(refusal(mode, -fd));
  const int wake_fd = open_above_standard_streams([] {
    const int made = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return made < 0 ? -errno : made;
  });
  const int error = -wake_fd;
  Userfault made(fd, wake_fd);
  if (wake_fd < 0) return fail(os_error("cannot make an eventfd", error));
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | kFeatureWpUnpopulated;
  if (mode == Mode::note_writes) api.features |= kFeatureWpAsync;
  if (::ioctl(fd, UFFDIO_API, &api) != 0) {
    const char* needed = mode == Mode::note_writes
                             ? "userfaultfd cannot note writes (Linux 6.7 can)"
                             : "userfaultfd cannot protect pages not there yet (Linux 6.4 can)";
    return fail(os_error(needed, errno));
  }
  return made;
}

Userfault::Userfault(Userfault&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), wake_fd_(std::exchange(other.wake_fd_, -1)) {}

Userfault::~Userfault() {
  if (fd_ >= 0) ::close(fd_);
  if (wake_fd_ >= 0) ::close(wake_fd_);
}

Status Userfault::add(PageRange range) const {
  uffdio_register request{};
  request.range = range_of(range);
  request.mode = UFFDIO_REGISTER_MODE_WP;
  if (::ioctl(fd_, UFFDIO_REGISTER, &request) != 0)
    return fail(os_error("cannot watch memory", errno));
  return {};
}

void Userfault::remove(PageRange range) const {
  uffdio_range request = range_of(range);
  ::ioctl(fd_, UFFDIO_UNREGISTER, &request);
  ::ioctl(fd_, UFFDIO_WAKE, &request);  // the kernel does this by itself only for missing pages
}

Status Userfault::protect(PageRange range) const {
  return change(fd_, range, UFFDIO_WRITEPROTECT_MODE_WP);
}

Status Userfault::release(PageRange range) const { return change(fd_, range, 0); }

Result<std::size_t> Userfault::wait_for_writers(std::span<std::uintptr_t> addresses) const {
  std::array<uffd_msg, 16> messages;
  const std::size_t most = std::min(messages.size(), addresses.size());
  while (true) {
    std::array<pollfd, 2> waiting{{{fd_, POLLIN, 0}, {wake_fd_, POLLIN, 0}}};
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) {
      return fail(os_error("cannot wait for writers", errno));
    }
    if (waiting[1].revents != 0) return 0;
    const ssize_t got = ::read(fd_, messages.data(), most * sizeof(uffd_msg));
    if (got < 0 && errno != EAGAIN && errno != EINTR)
      return fail(os_error("cannot ask for writers", errno));
    std::size_t found = 0;
    for (std::size_t i = 0; got > 0 && i < static_cast<std::size_t>(got) / sizeof(uffd_msg); ++i) {
      if (messages[i].event == UFFD_EVENT_PAGEFAULT)
        addresses[found++] = messages[i].arg.pagefault.address;
    }
    if (found > 0) return found;
  }
}

void Userfault::interrupt() const { ::eventfd_write(wake_fd_, 1); }

}  // namespace diapause::sys
