#include "sys/control_file.hpp"

#include <fcntl.h>

#include <cerrno>

#include "sys/file.hpp"
#include "sys/robust.hpp"

namespace diapause::sys {
namespace {

Result<File> open_for_writing(Kernel& kernel, const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  const int fd = uninterrupted([&] { return kernel.openat(AT_FDCWD, path.c_str(), kFlags, 0); });
  if (fd < 0) return fail(path_error("write to", path, fd));
  return File(kernel, fd, path);
}

}  // namespace

Status check_writable(Kernel& kernel, const std::string& path) {
  DIAPAUSE_TRY(open_for_writing(kernel, path));
  return {};
}

Status write_value(Kernel& kernel, const std::string& path, const std::string& text) {
  DIAPAUSE_TRY_ASSIGN(const File file, open_for_writing(kernel, path));
  const std::string line = text + "\n";
  const auto put = uninterrupted([&] { return kernel.pwrite(file.fd(), as_byte_view(line), 0); });
  if (put < 0) return fail(path_error("write \"" + text + "\" to", path, put));
  if (static_cast<std::size_t>(put) != line.size())
    return fail(Code::io, path + " did not take all of \"" + text + "\"");
  return {};
}

Status make_group(Kernel& kernel, const std::string& path) {
  const int result = kernel.mkdirat(AT_FDCWD, path.c_str(), 0755);
  if (result < 0 && result != -EEXIST) return fail(path_error("make", path, result));
  return {};
}

Status remove_group(Kernel& kernel, const std::string& path) {
  const int result = kernel.unlinkat(AT_FDCWD, path.c_str(), AT_REMOVEDIR);
  if (result < 0 && result != -ENOENT) return fail(path_error("remove", path, result));
  return {};
}

}  // namespace diapause::sys
