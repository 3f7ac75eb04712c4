#include "sys/memory.hpp"

#include <fcntl.h>

#include <array>
#include <charconv>
#include <string_view>

#include "sys/file.hpp"

namespace diapause::sys {

Result<std::uint64_t> available_memory_bytes(Kernel& kernel) {
  const int fd = kernel.openat(AT_FDCWD, "/proc/meminfo", O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return fail(os_error("opening /proc/meminfo", -fd));
  const File file(kernel, fd, "/proc/meminfo");
  std::array<char, 4096> buffer{};
  const std::int64_t length = kernel.pread(fd, std::as_writable_bytes(std::span(buffer)), 0);
  if (length < 0) return fail(os_error("reading /proc/meminfo", static_cast<int>(-length)));
  const std::string_view text(buffer.data(), static_cast<std::size_t>(length));
  constexpr std::string_view kKey = "MemAvailable:";
  const std::size_t key = text.find(kKey);
  const std::size_t digits = key == text.npos ? key : text.find_first_not_of(' ', key + kKey.size());
  std::uint64_t kib = 0;
  if (digits == text.npos || std::from_chars(text.data() + digits, text.data() + text.size(), kib).ec != std::errc{}) {
    return fail(Code::io, "/proc/meminfo does not say MemAvailable");
  }
  return kib * 1024;
}

}  // namespace diapause::sys
