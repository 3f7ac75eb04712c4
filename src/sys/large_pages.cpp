#include "sys/large_pages.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/statfs.h>

#include <cerrno>
#include <ctime>

#include "base/bytes.hpp"

namespace diapause::sys {
namespace {

constexpr int kCollapse = 25;  // MADV_COLLAPSE of Linux 6.1, which older headers lack

bool is_in_memory(int fd) {
  struct statfs kind;
  return ::fstatfs(fd, &kind) == 0 && kind.f_type == TMPFS_MAGIC;
}

// Returns the processor time of this thread, which does not depend on what others do.
double own_processor_s() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// Maps `length` bytes from `offset` on to an address that lies in its large page where `offset`
// does in that of the file.
void* map_aligned(int fd, std::uint64_t offset, std::uint64_t length, int flags) {
  constexpr int kNoMemory = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  const std::uint64_t bytes = round_up(length, kPageBytes);
  void* const room = ::mmap(nullptr, bytes + kLargePageBytes, PROT_NONE, kNoMemory, -1, 0);
  if (room == MAP_FAILED) return MAP_FAILED;
  auto* const begin = static_cast<std::byte*>(room);
  const auto address = reinterpret_cast<std::uintptr_t>(room);
  const std::uint64_t before = (offset - address) % kLargePageBytes;
  void* const mapped = ::mmap(begin + before, length, PROT_READ | PROT_WRITE, MAP_FIXED | flags, fd,
                              static_cast<off_t>(offset));
  const int error = errno;
  const bool failed = mapped == MAP_FAILED;
  if (before > 0) ::munmap(room, before);
  const std::uint64_t kept = failed ? 0 : bytes;
  ::munmap(begin + before + kept, bytes + kLargePageBytes - before - kept);
  errno = error;
  return mapped;
}

std::byte* map_where_it_fits(int fd, std::uint64_t offset, std::uint64_t length, int flags,
                             int* error) {
  void* const mapped = length < kLargePageBytes ? ::mmap(nullptr, length, PROT_READ | PROT_WRITE,
                                                         flags, fd, static_cast<off_t>(offset))
                                                : map_aligned(fd, offset, length, flags);
  if (mapped != MAP_FAILED) return static_cast<std::byte*>(mapped);
  *error = errno;
  return nullptr;
}

}  // namespace

// A page of the file is asked for first, because the kernel makes a large page only of pages that
// are there. A kernel that has to move other memory out of the way for each of them would take
// longer than small pages do.
void back_by_large_pages(int fd, std::uint64_t begin, std::uint64_t end) {
  constexpr double kMostSEach = 0.01;
  constexpr double kMostSAtFirst = 0.1;
  begin = round_up(begin, kLargePageBytes);
  end = end / kLargePageBytes * kLargePageBytes;
  if (begin >= end || !is_in_memory(fd)) return;
  void* const mapped = map_aligned(fd, begin, end - begin, MAP_SHARED);
  if (mapped == MAP_FAILED) return;
  double most_s = own_processor_s() + kMostSAtFirst;
  for (std::uint64_t at = begin; at < end && own_processor_s() < most_s; at += kLargePageBytes) {
    std::byte* const place = static_cast<std::byte*>(mapped) + (at - begin);
    if (::fallocate(fd, 0, static_cast<off_t>(at), kPageBytes) != 0) break;
    if (::madvise(place, kLargePageBytes, kCollapse) != 0) break;
    most_s += kMostSEach;
  }
  ::munmap(mapped, end - begin);
}

std::byte* map_for_large_pages(int fd, std::uint64_t length, int* error) {
  return map_where_it_fits(fd, 0, length, MAP_SHARED | MAP_POPULATE, error);
}

std::byte* map_private_for_large_pages(int fd, std::uint64_t offset, std::uint64_t length,
                                       int* error) {
  return map_where_it_fits(fd, offset, length, MAP_PRIVATE | MAP_NORESERVE, error);
}

}  // namespace diapause::sys
