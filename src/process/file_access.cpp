#include "process/file_access.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "process/zeros.hpp"

namespace diapause::process {
namespace {

// Returns how many bytes from the first one on are pages that hold zeros, or pages that do not.
std::size_t length_of_run(ByteView bytes, bool of_zeros) {
  constexpr std::size_t kMostZeros = 16 * kPageBytes;
  const std::size_t most = of_zeros ? std::min(bytes.size(), kMostZeros) : bytes.size();
  std::size_t length = 0;
  while (length < most) {
    const ByteView page =
        bytes.subspan(length, std::min<std::size_t>(kPageBytes, bytes.size() - length));
    if (is_all_zero(page) != of_zeros) break;
    length += page.size();
  }
  return length;
}

}  // namespace

int open_as_owner(const std::string& path, int flags, mode_t mode) {
  const int opened = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  if (opened >= 0 || errno != EACCES) return opened;
  const int place = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  struct stat now {};
  const bool is_own =
      place >= 0 && ::fstat(place, &now) == 0 && S_ISREG(now.st_mode) && now.st_uid == ::geteuid();
  const std::string by_number = fmt::format("/proc/self/fd/{}", place);
  int file = -1, error = EACCES;
  if (is_own && ::chmod(by_number.c_str(), (now.st_mode & 07777) | S_IRUSR | S_IWUSR) == 0) {
    file = ::open(by_number.c_str(), (flags & ~(O_CREAT | O_NOFOLLOW)) | O_CLOEXEC);
    error = errno;
    ::chmod(by_number.c_str(), now.st_mode & 07777);
  }
  if (place >= 0) ::close(place);
  errno = error;
  return file;
}

bool is_below(std::string_view path, std::string_view directory) {
  return path.starts_with(directory) && (path.size() == directory.size() ||
                                         directory.ends_with('/') || path[directory.size()] == '/');
}

std::int64_t nanoseconds(const timespec& time) {
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

void make_directories_of(const std::string& path) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
}

Status write_all(int file, std::uint64_t offset, ByteView bytes, const std::string& what) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      Error why = os_error(what, errno);
      if (why.code == Code::full) why.message += "; make room, and restart once more";
      return fail(std::move(why));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

bool holds_zeros(int file, std::uint64_t offset, std::size_t bytes) {
  ByteVector held(bytes);
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t got =
        ::pread(file, held.data() + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return is_all_zero(held);
}

Status write_sparsely(int file, std::uint64_t offset, ByteView bytes, const std::string& what) {
  while (!bytes.empty()) {
    const bool is_zero = is_all_zero(bytes.first(std::min<std::size_t>(kPageBytes, bytes.size())));
    const std::size_t length = length_of_run(bytes, is_zero);
    if (!is_zero || !holds_zeros(file, offset, length))
      DIAPAUSE_TRY(write_all(file, offset, bytes.first(length), what));
    bytes = bytes.subspan(length);
    offset += length;
  }
  return {};
}

}  // namespace diapause::process
