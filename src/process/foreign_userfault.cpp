#include "process/foreign_userfault.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace diapause::process {
namespace {

// These numbers are newer than the headers that this must build with.
constexpr std::uint64_t kFeatureWpAsync = std::uint64_t{1} << 15;  // Linux 6.7
constexpr std::uint64_t kFeatureWpUnpopulated = std::uint64_t{1}
                                                << 13;  // Linux 6.4, part of the former
constexpr std::uint64_t kUserModeOnly = 1;              // Linux 5.11

// Returns a descriptor of this process for what process `here` has open as `number`.
Result<int> take_descriptor(pid_t here, std::uint64_t number) {
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, here, 0));
  if (process < 0) return fail(os_error(fmt::format("opening process {}", here), errno));
  const int taken = static_cast<int>(::syscall(SYS_pidfd_getfd, process, number, 0));
  const int error = errno;
  ::close(process);
  if (taken < 0)
    return fail(os_error(fmt::format("taking a descriptor of process {}", here), error));
  return taken;
}

}  // namespace

Result<ForeignUserfault> ForeignUserfault::open(const Calls& calls, const ThreadName& thread,
                                                Use use) {
  const bool is_giving = use == Use::give_pages;
  const std::uint64_t mode = is_giving ? 0 : kUserModeOnly;
  const Call make{SYS_userfaultfd, {O_CLOEXEC | O_NONBLOCK | mode}, 0};
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t number, calls.one(thread, make));
  auto taken = take_descriptor(thread.here, number);
  DIAPAUSE_TRY(calls.one(thread, {SYS_close, {number}, 0}));
  if (!taken) return fail(std::move(taken.error()));
  ForeignUserfault made(*taken, use);
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | kFeatureWpUnpopulated | kFeatureWpAsync;
  if (is_giving) {
    api.features = UFFD_FEATURE_EVENT_FORK | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE |
                   UFFD_FEATURE_EVENT_UNMAP;
  }
  if (::ioctl(made.fd_, UFFDIO_API, &api) == 0) return made;
  const char* const what = is_giving ? "userfaultfd cannot follow a process (CAP_SYS_PTRACE can)"
                                     : "userfaultfd cannot note writes (Linux 6.7 can)";
  return fail(os_error(what, errno));
}

ForeignUserfault::ForeignUserfault(ForeignUserfault&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), use_(other.use_) {}

ForeignUserfault& ForeignUserfault::operator=(ForeignUserfault&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(use_, other.use_);
  return *this;
}

ForeignUserfault::~ForeignUserfault() {
  if (fd_ >= 0) ::close(fd_);
}

Status ForeignUserfault::watch(const Extent& range) const {
  uffdio_register request{};
  request.range = {range.begin, range.end - range.begin};
  request.mode = use_ == Use::give_pages ? UFFDIO_REGISTER_MODE_MISSING : UFFDIO_REGISTER_MODE_WP;
  if (::ioctl(fd_, UFFDIO_REGISTER, &request) == 0) return {};
  return fail(os_error(fmt::format("watching memory at {:#x}", range.begin), errno));
}

}  // namespace diapause::process
