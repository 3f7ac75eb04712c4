#include "sys/memory.hpp"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "sys/file.hpp"

namespace diapause::sys {

namespace {

// Returns the bytes of a line such as "MemTotal:       24684544 kB".
std::optional<std::uint64_t> bytes_at(std::string_view meminfo, std::string_view key) {
  const std::size_t line = meminfo.find(key);
  const std::size_t digits =
      line == meminfo.npos ? line : meminfo.find_first_not_of(' ', line + key.size());
  std::uint64_t kib = 0;
  if (digits == meminfo.npos) return std::nullopt;
  const auto read = std::from_chars(meminfo.data() + digits, meminfo.data() + meminfo.size(), kib);
  if (read.ec != std::errc{}) return std::nullopt;
  return kib * 1024;
}

}  // namespace

Result<MemoryRoom> memory_of_machine(Kernel& kernel) {
  const int fd = kernel.openat(AT_FDCWD, "/proc/meminfo", O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return fail(os_error("opening /proc/meminfo", -fd));
  const File file(kernel, fd, "/proc/meminfo");
  std::array<char, 4096> buffer{};
  const std::int64_t length = kernel.pread(fd, std::as_writable_bytes(std::span(buffer)), 0);
  if (length < 0) return fail(os_error("reading /proc/meminfo", static_cast<int>(-length)));
  const std::string_view text(buffer.data(), static_cast<std::size_t>(length));
  const auto total = bytes_at(text, "MemTotal:");
  const auto available = bytes_at(text, "MemAvailable:");
  if (!total || !available)
    return fail(Code::io, "/proc/meminfo does not say MemTotal and MemAvailable");
  return MemoryRoom{*total, *available};
}

Status copy_if_mapped(MutableBytes to, ByteView from) {
  const pid_t self = ::getpid();
  for (std::size_t done = 0; done < from.size();) {
    const iovec target{to.data() + done, from.size() - done};
    // The call only reads from `source`.
    const iovec source{const_cast<std::byte*>(from.data()) + done, from.size() - done};  // NOLINT
    const ssize_t copied = ::process_vm_readv(self, &target, 1, &source, 1, 0);
    if (copied < 0 && errno == EINTR) continue;
    if (copied < 0 && (errno == EPERM || errno == ENOSYS)) {
      std::memcpy(to.data() + done, from.data() + done, from.size() - done);
      return {};
    }
    if (copied <= 0)
      return fail(os_error("cannot read memory of this process", copied == 0 ? EFAULT : errno));
    done += static_cast<std::size_t>(copied);
  }
  return {};
}

}  // namespace diapause::sys
