#include "sys/text_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include "sys/file.hpp"
#include "sys/robust.hpp"

namespace diapause::sys {

Result<std::string> read_text_file(Kernel& kernel, const std::string& path) {
  const int fd = kernel.openat(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return fail(os_error("cannot read " + path, -fd));
  const File file(kernel, fd, path);
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t size, file.size());
  if (size > kMiB) return fail(Code::io, path + " is larger than 1 MiB");
  std::string text(size, '\0');
  DIAPAUSE_TRY(file.read_exact(std::as_writable_bytes(std::span(text.data(), text.size())), 0));
  return text;
}

Status append_line(Kernel& kernel, const std::string& path, const std::string& line) {
  // Without O_NONBLOCK a named pipe would hold us for ever.
  constexpr int kFlags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  const int fd = uninterrupted([&] { return kernel.openat(AT_FDCWD, path.c_str(), kFlags, 0600); });
  if (fd < 0) return fail(path_error("open", path, fd));
  const File file(kernel, fd, path);
  struct stat status;
  const int result = uninterrupted([&] { return kernel.fstat(fd, &status); });
  if (result < 0) return fail(path_error("inspect", path, result));
  if (!S_ISREG(status.st_mode)) return fail(Code::denied, path + " is not a regular file");
  return file.write_all(as_byte_view(line + "\n"), static_cast<std::uint64_t>(status.st_size));
}

}  // namespace diapause::sys
