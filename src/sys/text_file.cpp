#include "sys/text_file.hpp"

#include <fcntl.h>

#include "sys/file.hpp"

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

}  // namespace diapause::sys
