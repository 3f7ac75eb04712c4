#include "sys/robust.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace diapause::sys {

// A descriptor of O_PATH fails in read and write with EBADF, as a closed one does. It stays open,
// since the program may have closed it and opened its own in its place.
void occupy_standard_streams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    const int fd = ::open("/dev/null", O_PATH | O_CLOEXEC);
    if (fd > STDERR_FILENO) ::close(fd);
  }
}

// Moves a descriptor where the program has closed a standard stream meanwhile.
int above_standard_streams(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(fd);
  return moved < 0 ? -error : moved;
}

Error path_error(std::string_view action, const std::string& path, std::int64_t result) {
  const int os_errno = static_cast<int>(-result);
  const std::string what = fmt::format("cannot {} {}", action, path);
  if (os_errno == ELOOP) {
    return Error{Code::denied, what + ": it is a symbolic link; give the path it points to",
                 os_errno};
  }
  Error error = os_error(what, os_errno);
  if (os_errno == ENOENT) error.code = Code::not_found;
  return error;
}

bool is_plain_name(std::string_view name) {
  constexpr std::size_t kLongestName = 255;
  if (name.empty() || name.size() > kLongestName || name == "." || name == "..") return false;
  return name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

Status check_plain_name(std::string_view name, const Directory& directory) {
  if (is_plain_name(name)) return {};
  return fail(Code::argument,
              fmt::format("'{}' is not a plain name for an entry of {}", name, directory.path()));
}

namespace {

Error not_regular(const std::string& path) {
  return {Code::denied, path + " is not a regular file; remove it"};
}

Result<FileId> check_own_regular_file(const File& file, std::uint32_t user) {
  struct stat status;
  if (const int result = uninterrupted([&] { return file.kernel().fstat(file.fd(), &status); });
      result < 0) {
    return fail(path_error("inspect", file.path(), result));
  }
  if (!S_ISREG(status.st_mode)) return fail(not_regular(file.path()));
  if (status.st_uid != user) {
    return fail(
        Code::denied,
        fmt::format("{} belongs to user {} and not to user {}, who runs this program; remove it",
                    file.path(), status.st_uid, user));
  }
  return FileId{status.st_dev, status.st_ino};
}

}  // namespace

Result<File> open_checked(const Directory& directory, std::string_view name, int flags) {
  DIAPAUSE_TRY(check_plain_name(name, directory));
  const std::string component(name);
  Kernel& kernel = directory.kernel();
  const auto open = [&](int all_flags) {
    return uninterrupted(
        [&] { return kernel.openat(directory.fd(), component.c_str(), all_flags, 0600); });
  };
  flags |= O_CLOEXEC | O_NOFOLLOW | O_NOCTTY;
  int fd = open(flags);
  if (fd == -EINVAL && (flags & O_DIRECT) != 0) {
    flags &= ~O_DIRECT;
    fd = open(flags);
    // If the name exists now, the refused open has made it: an existing file would have been
    // reported then.
    if (fd == -EEXIST) fd = open(flags & ~O_EXCL);
  }
  const std::string path = directory.path() + "/" + component;
  if (fd == -ENXIO) return fail(not_regular(path));  // a socket, or a device that is not there
  if (fd < 0) return fail(path_error((flags & O_CREAT) != 0 ? "create" : "open", path, fd));
  File file(kernel, fd, path, flags);
  DIAPAUSE_TRY_ASSIGN(file.id_, check_own_regular_file(file, directory.user()));
  file.is_volatile_ = directory.is_volatile() && file.id_.device == directory.id().device;
  return file;
}

}  // namespace diapause::sys
