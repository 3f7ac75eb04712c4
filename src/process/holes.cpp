#include "process/holes.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "base/bytes.hpp"
#include "process/file_access.hpp"

namespace diapause::process {
namespace {

// Holes on a disk that are smaller are read and stored like what is around them.
constexpr std::uint64_t kGapOnDisk = 16 * kPageBytes;

// Returns whether a file system tells of every page that may hold something, also of those that
// were written through a mapping and that it has not put on the disk yet. The kernel's own ext4 and
// XFS reserve room for a page, or look for it in memory, before a program can write to it.
bool tells_holes(const struct statfs& system) {
  return system.f_type == TMPFS_MAGIC || system.f_type == EXT4_SUPER_MAGIC ||
         system.f_type == XFS_SUPER_MAGIC;
}

// Adds a run of pages that follows the last one, or lies behind it by more than a gap.
void add(std::vector<Extent>& extents, const Extent& one, std::uint64_t gap_bytes = 0) {
  if (!extents.empty() && one.begin <= extents.back().end + gap_bytes) {
    extents.back().end = std::max(extents.back().end, one.end);
  } else {
    extents.push_back(one);
  }
}

// Returns the device of memory that no file system has, or 0 if there is none.
dev_t device_of_memory() {
  const int file = ::memfd_create("diapause", MFD_CLOEXEC);
  struct stat found {};
  const bool is_known = file >= 0 && ::fstat(file, &found) == 0;
  if (file >= 0) ::close(file);
  return is_known ? found.st_dev : 0;
}

// Pages that the kernel has written to swap count as absent.
bool may_be_swapped() {
  struct sysinfo now {};
  return ::sysinfo(&now) != 0 || now.freeswap != now.totalswap;
}

// Lets the process ask the kernel, which looks at every page.
std::optional<std::vector<Extent>> resident_pages(const FrozenProcess& frozen,
                                                  const Extent& range) {
  constexpr std::uint64_t kAtOnce = Calls::room_bytes() * kPageBytes;
  const std::uint64_t room = frozen.calls->room();
  std::vector<Extent> extents;
  ByteVector is_there;
  for (std::uint64_t at = range.begin; at < range.end; at += kAtOnce) {
    const std::uint64_t bytes = std::min(kAtOnce, range.end - at);
    is_there.resize(bytes / kPageBytes);
    const auto asked = frozen.calls->one(frozen.leader().name, {SYS_mincore, {at, bytes, room}, 0});
    if (!asked || !read_memory(frozen.here, room, is_there)) return std::nullopt;
    for (std::size_t i = 0; i < is_there.size(); ++i) {
      if (is_there[i] == std::byte{0}) continue;
      const std::uint64_t page = at + i * kPageBytes;
      add(extents, {page, page + kPageBytes});
    }
  }
  // What was swapped out before is so still, because nobody touches it.
  if (may_be_swapped()) return std::nullopt;
  return extents;
}

}  // namespace

bool lies_in_memory(const std::string& path) {
  struct statfs found {};
  return ::statfs(path.c_str(), &found) == 0 &&
         (found.f_type == TMPFS_MAGIC || found.f_type == RAMFS_MAGIC);
}

std::optional<std::vector<Extent>> pages_of_file(const std::string& path, const Extent& part) {
  struct statfs system {};
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::optional<std::vector<Extent>> found;
  if (::fstatfs(file, &system) == 0 && tells_holes(system)) found.emplace();
  const std::uint64_t gap_bytes = system.f_type == TMPFS_MAGIC ? 0 : kGapOnDisk;
  std::uint64_t at = part.begin;
  while (found && at < part.end) {
    const off_t begin = ::lseek(file, static_cast<off_t>(at), SEEK_DATA);
    if (begin < 0 && errno == ENXIO) break;  // nothing follows
    const off_t end = begin < 0 ? -1 : ::lseek(file, begin, SEEK_HOLE);
    if (end < 0) {
      found.reset();
      break;
    }
    const std::uint64_t page = static_cast<std::uint64_t>(begin) / kPageBytes * kPageBytes;
    const Extent data{std::max(page, part.begin),
                      std::min(round_up(static_cast<std::uint64_t>(end), kPageBytes), part.end)};
    if (data.begin < data.end) add(*found, data, gap_bytes);
    at = static_cast<std::uint64_t>(end);
  }
  ::close(file);
  return found;
}

std::optional<std::vector<Extent>> pages_of_mapping(const std::string& path, const Mapping& mapping,
                                                    const Extent& range) {
  const std::uint64_t shift = mapping.begin - mapping.offset;
  auto found = pages_of_file(path, {range.begin - shift, range.end - shift});
  if (!found) return std::nullopt;
  for (Extent& one : *found) one = {one.begin + shift, one.end + shift};
  return found;
}

std::string path_of_mapping(pid_t process, const Mapping& mapping) {
  return fmt::format("/proc/{}/map_files/{:x}-{:x}", process, mapping.begin, mapping.end);
}

Status empty_part(int file, const Extent& part, const std::string& what) {
  constexpr std::uint64_t kAtOnce = kMiB;
  const auto data = pages_of_file(fmt::format("/proc/self/fd/{}", file), part);
  const ByteVector zeros(kAtOnce);
  for (const Extent& one : data.value_or(std::vector<Extent>{part})) {
    for (std::uint64_t at = one.begin; at < one.end; at += kAtOnce) {
      const std::uint64_t bytes = std::min(kAtOnce, one.end - at);
      if (holds_zeros(file, at, bytes)) continue;
      if (::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(at),
                      static_cast<off_t>(bytes)) == 0)
        continue;
      if (errno != EOPNOTSUPP && errno != ENOSYS) return fail(os_error(what, errno));
      DIAPAUSE_TRY(write_sparsely(file, at, ByteView(zeros).first(bytes), what));
    }
  }
  return {};
}

bool is_of_no_file_system(const Mapping& mapping) {
  static const dev_t device = device_of_memory();
  return device != 0 && mapping.device == device;
}

std::optional<std::vector<Extent>> pages_of_shared_memory(const FrozenProcess& frozen,
                                                          const Mapping& mapping,
                                                          const Extent& range) {
  // This takes as long as there are pages, and knows those in swap.
  auto found = pages_of_mapping(path_of_mapping(frozen.here, mapping), mapping, range);
  return found ? found : resident_pages(frozen, range);
}

}  // namespace diapause::process
