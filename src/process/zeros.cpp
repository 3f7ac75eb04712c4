#include "process/zeros.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "process/trace.hpp"

namespace diapause::process {
namespace {

constexpr std::uint64_t kGroupBytes = 16 * kPageBytes;
constexpr std::size_t kProbeBytes = 64;
constexpr std::size_t kProbes = 256;  // probes in one call

bool is_all_zero(ByteView bytes) {
  return bytes.empty() || (bytes.front() == std::byte{0} &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// Returns the addresses of those groups that begin with zeros, among the `count` groups from
// `begin` on. Memory that is in use hardly ever does.
std::vector<std::uint64_t> suspects(pid_t process, std::uint64_t begin, std::size_t count) {
  // NOLINT(cppcoreguidelines-pro-type-member-init): written to.
  std::array<std::byte, kProbes * kProbeBytes> found;
  std::vector<iovec> there;
  for (std::size_t i = 0; i < count; ++i) {
    there.push_back({reinterpret_cast<void*>(begin + i * kGroupBytes), kProbeBytes});
  }
  iovec here{found.data(), count * kProbeBytes};
  const ssize_t got = ::process_vm_readv(process, &here, 1, there.data(), there.size(), 0);
  const std::size_t probed = got < 0 ? 0 : static_cast<std::size_t>(got) / kProbeBytes;
  std::vector<std::uint64_t> result;
  for (std::size_t i = 0; i < probed; ++i) {
    if (is_all_zero(ByteView(found).subspan(i * kProbeBytes, kProbeBytes)))
      result.push_back(begin + i * kGroupBytes);
  }
  return result;
}

void add(std::vector<Extent>& extents, const Extent& one) {
  if (one.begin < one.end) extents.push_back(one);
}

}  // namespace

std::vector<Extent> without_zeros(pid_t process, const std::vector<Extent>& extents) {
  std::vector<Extent> rest;
  ByteVector group(kGroupBytes);
  for (const Extent& extent : extents) {
    std::uint64_t kept_from = extent.begin;
    std::uint64_t at = (extent.begin + kGroupBytes - 1) / kGroupBytes * kGroupBytes;
    while (at + kGroupBytes <= extent.end) {
      const std::size_t count = std::min<std::uint64_t>(kProbes, (extent.end - at) / kGroupBytes);
      for (const std::uint64_t suspect : suspects(process, at, count)) {
        if (!read_memory(process, suspect, group) || !is_all_zero(group)) continue;
        add(rest, {kept_from, suspect});
        kept_from = suspect + kGroupBytes;
      }
      at += count * kGroupBytes;
    }
    add(rest, {kept_from, extent.end});
  }
  return rest;
}

}  // namespace diapause::process
