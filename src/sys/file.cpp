#include "sys/file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <utility>

#include "sys/robust.hpp"

namespace diapause::sys {

File::File(File&& other) noexcept
    : kernel_(other.kernel_),
      fd_(std::exchange(other.fd_, -1)),
      flags_(other.flags_),
      is_volatile_(other.is_volatile_),
      path_(std::move(other.path_)),
      id_(other.id_) {}

File& File::operator=(File&& other) noexcept {
  if (this == &other) return *this;
  if (fd_ >= 0) kernel_->close(fd_);
  kernel_ = other.kernel_;
  fd_ = std::exchange(other.fd_, -1);
  flags_ = other.flags_;
  is_volatile_ = other.is_volatile_;
  path_ = std::move(other.path_);
  id_ = other.id_;
  return *this;
}

File::~File() {
  if (fd_ >= 0) kernel_->close(fd_);
}

bool File::is_direct() const { return (flags_ & O_DIRECT) != 0; }

// Returns whether `result` was a refusal of O_DIRECT and the transfer is worth repeating without
// it.
bool File::stops_direct(std::int64_t result) const {
  if (result != -EINVAL || !is_direct() ||
      uninterrupted([&] { return kernel_->stop_direct(fd_); }) < 0)
    return false;
  flags_ &= ~O_DIRECT;
  return true;
}

Status File::read_exact(MutableBytes data, std::uint64_t offset) const {
  const auto ends_at = [&](std::uint64_t end) {
    return fail(Code::corrupt, fmt::format("{} ends at byte {}, before byte {} that is needed",
                                           path_, end, offset + data.size()));
  };
  while (!data.empty()) {
    const std::int64_t count = uninterrupted([&] { return kernel_->pread(fd_, data, offset); });
    if (stops_direct(count)) continue;
    if (count < 0) return fail(path_error("read", path_, count));
    if (count == 0) return ends_at(offset);
    data = data.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
    if (data.empty()) break;
    // The size is asked for here. Reading on to find the end would fail with O_DIRECT if the end is
    // not at a block.
    DIAPAUSE_TRY_ASSIGN(const std::uint64_t end, size());
    if (end < offset + data.size()) return ends_at(end);
  }
  return {};
}

Status File::write_all(ByteView data, std::uint64_t offset) const {
  while (!data.empty()) {
    const std::int64_t count = uninterrupted([&] { return kernel_->pwrite(fd_, data, offset); });
    if (stops_direct(count)) continue;
    if (count < 0) return fail(path_error("write", path_, count));
    if (count == 0) return fail(path_error("write", path_, -EIO));
    data = data.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return {};
}

Status File::sync() const {
  if (is_volatile_) return {};
  // A failed sync is never repeated: the kernel has dropped the pages by then, and a second call
  // would report success.
  const int result = uninterrupted([&] { return kernel_->fsync(fd_); });
  if (result < 0) return fail(path_error("sync", path_, result));
  return {};
}

Status File::reserve_front(std::uint64_t length) const {
  const int result = uninterrupted([&] { return kernel_->fallocate(fd_, 0, length); });
  const bool unsupported = result == -EOPNOTSUPP || result == -ENOSYS || result == -EINVAL;
  if (result < 0 && !unsupported) return fail(path_error("reserve space for", path_, result));
  return {};
}

Status File::reserve(std::uint64_t length) const {
  DIAPAUSE_TRY(reserve_front(length));
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t present, size());
  return present == length ? Status() : truncate(length);
}

Status File::truncate(std::uint64_t length) const {
  const int result = uninterrupted([&] { return kernel_->ftruncate(fd_, length); });
  if (result < 0) return fail(path_error("set the size of", path_, result));
  return {};
}

Result<std::uint64_t> File::size() const {
  struct stat status;
  const int result = uninterrupted([&] { return kernel_->fstat(fd_, &status); });
  if (result < 0) return fail(path_error("inspect", path_, result));
  return static_cast<std::uint64_t>(status.st_size);
}

bool File::has_no_name() const {
  struct stat status;
  return uninterrupted([&] { return kernel_->fstat(fd_, &status); }) >= 0 && status.st_nlink == 0;
}

}  // namespace diapause::sys
