#include "process/zeros.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "process/trace.hpp"

namespace diapause::process {
namespace {

constexpr std::size_t kProbeBytes = 64;
constexpr std::size_t kProbes = 256;  // probes in one call

// Reads the beginnings of groups into `to`, and returns of how many they could be read.
std::size_t probe(pid_t process, const std::vector<std::uint64_t>& groups, std::byte* to) {
  std::vector<iovec> there;
  there.reserve(groups.size());
  for (const std::uint64_t group : groups) {
    there.push_back({reinterpret_cast<void*>(group), kProbeBytes});
  }
  iovec here{to, groups.size() * kProbeBytes};
  const ssize_t got = ::process_vm_readv(process, &here, 1, there.data(), there.size(), 0);
  return got < 0 ? 0 : static_cast<std::size_t>(got) / kProbeBytes;
}

// Does the same from /proc/<pid>/mem, which is open as `file`.
std::size_t probe_forced(int file, const std::vector<std::uint64_t>& groups, std::byte* to) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const ssize_t got =
        ::pread(file, to + i * kProbeBytes, kProbeBytes, static_cast<off_t>(groups[i]));
    if (got != static_cast<ssize_t>(kProbeBytes)) return i;
  }
  return groups.size();
}

// Returns those groups that begin with zeros. Memory that is in use hardly ever does. `file` is -1,
// or as above.
std::vector<std::uint64_t> suspects(pid_t process, int file,
                                    const std::vector<std::uint64_t>& groups) {
  // NOLINT(cppcoreguidelines-pro-type-member-init): written to.
  std::array<std::byte, kProbes * kProbeBytes> found;
  const std::size_t probed =
      file < 0 ? probe(process, groups, found.data()) : probe_forced(file, groups, found.data());
  std::vector<std::uint64_t> result;
  for (std::size_t i = 0; i < probed; ++i) {
    if (is_all_zero(ByteView(found).subspan(i * kProbeBytes, kProbeBytes)))
      result.push_back(groups[i]);
  }
  return result;
}

}  // namespace

bool is_all_zero(ByteView bytes) {
  return bytes.empty() || (bytes.front() == std::byte{0} &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

std::vector<Extent> zeros_in(pid_t process, const Extent& range, bool is_forced,
                             const KnownZeros& known) {
  const auto read = is_forced ? read_any_memory : read_memory;
  const std::string path = fmt::format("/proc/{}/mem", process);
  const int file = is_forced ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC) : -1;
  if (is_forced && file < 0) return {};
  std::vector<Extent> zeros;
  ByteVector bytes(kZeroGroupBytes);
  std::uint64_t at = (range.begin + kZeroGroupBytes - 1) / kZeroGroupBytes * kZeroGroupBytes;
  while (at + kZeroGroupBytes <= range.end) {
    std::vector<std::uint64_t> asked;
    for (; asked.size() < kProbes && at + kZeroGroupBytes <= range.end; at += kZeroGroupBytes) {
      const std::optional<bool> is_zero = known ? known(at) : std::nullopt;
      if (!is_zero) asked.push_back(at);
      if (is_zero && *is_zero) zeros.push_back({at, at + kZeroGroupBytes});
    }
    for (const std::uint64_t group : suspects(process, file, asked)) {
      if (read(process, group, bytes) && is_all_zero(bytes))
        zeros.push_back({group, group + kZeroGroupBytes});
    }
  }
  if (file >= 0) ::close(file);
  std::ranges::sort(zeros, {}, &Extent::begin);
  return zeros;
}

std::vector<Extent> rest_of(const Extent& range, const std::vector<Extent>& taken) {
  std::vector<Extent> rest;
  std::uint64_t at = range.begin;
  for (const Extent& one : taken) {
    if (one.begin > at) rest.push_back({at, one.begin});
    at = one.end;
  }
  if (at < range.end) rest.push_back({at, range.end});
  return rest;
}

}  // namespace diapause::process
