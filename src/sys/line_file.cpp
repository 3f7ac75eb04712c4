#include "sys/line_file.hpp"

#include <fcntl.h>

#include <array>

#include "sys/robust.hpp"

namespace diapause::sys {

Result<LineFile> LineFile::open(Kernel& kernel, const std::string& path) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  const int fd = uninterrupted([&] { return kernel.openat(AT_FDCWD, path.c_str(), kFlags, 0); });
  if (fd < 0) return fail(path_error("read", path, fd));
  return LineFile(File(kernel, fd, path));
}

Result<std::optional<std::string>> LineFile::next() {
  std::array<char, 16384> block{};
  while (true) {
    if (const std::size_t end = pending_.find('\n', given_); end != std::string::npos) {
      std::string line = pending_.substr(given_, end - given_);
      given_ = end + 1;
      return line;
    }
    pending_.erase(0, given_);
    given_ = 0;
    if (pending_.size() > kMiB)
      return fail(Code::corrupt, path() + " has a line of more than 1 MiB");
    const auto got = uninterrupted([&] {
      return file_.kernel().pread(file_.fd(), std::as_writable_bytes(std::span(block)), offset_);
    });
    if (got < 0) return fail(path_error("read", path(), got));
    if (got == 0) return std::optional<std::string>();
    pending_.append(block.data(), static_cast<std::size_t>(got));
    offset_ += static_cast<std::uint64_t>(got);
  }
}

Status LineFile::skip_to_last(std::uint64_t bytes) {
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t size, file_.size());
  if (size <= offset_ + bytes) return {};
  pending_.clear();
  given_ = 0;
  offset_ = size - bytes;
  DIAPAUSE_TRY(next());  // the rest of a line that began earlier
  return {};
}

}  // namespace diapause::sys
