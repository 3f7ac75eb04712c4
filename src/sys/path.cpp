#include "sys/path.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "sys/robust.hpp"

namespace diapause::sys {

Result<std::string> canonical_path(const std::string& path) {
  std::error_code error;
  const std::filesystem::path canonical = std::filesystem::canonical(path, error);
  if (error) return fail(path_error("find", path, -error.value()));
  return canonical.string();
}

std::string plain_spelling(const std::string& path) {
  std::string plain;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (!part.empty() && part != ".") plain += (plain.empty() ? "" : "/") + part;
    begin = end + 1;
  }
  if (path.starts_with('/')) return "/" + plain;
  return plain.empty() ? "." : plain;
}

Result<File> open_existing_file(Kernel& kernel, const std::string& path) {
  // Without O_NONBLOCK, opening a named pipe would block for ever.
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  const int fd = uninterrupted([&] { return kernel.openat(AT_FDCWD, path.c_str(), kFlags, 0); });
  if (fd < 0) return fail(path_error("open", path, fd));
  File file(kernel, fd, path);
  struct stat status;
  const int result = uninterrupted([&] { return kernel.fstat(fd, &status); });
  if (result < 0) return fail(path_error("inspect", path, result));
  if (!S_ISREG(status.st_mode))
    return fail(Code::denied, fmt::format("{} is not a regular file", path));
  return file;
}

Result<File> open_again(const File& file) {
  const std::string path = "/proc/self/fd/" + std::to_string(file.fd());
  const int fd = file.kernel().openat(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return fail(os_error("opening " + file.path() + " again", -fd));
  return File(file.kernel(), fd, file.path(), O_RDONLY);
}

Status remove_file(Kernel& kernel, const std::string& path) {
  const int result = uninterrupted([&] { return kernel.unlinkat(AT_FDCWD, path.c_str(), 0); });
  if (result < 0 && result != -ENOENT) return fail(path_error("remove", path, result));
  return {};
}

}  // namespace diapause::sys
