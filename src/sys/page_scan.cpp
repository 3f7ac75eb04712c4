#include "sys/page_scan.hpp"

#include <fcntl.h>
#include <linux/ioctl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace diapause::sys {
namespace {

// This is the struct of <linux/fs.h> of Linux 6.7, because this must build with older headers.
struct ScanArguments {
  std::uint64_t size;
  std::uint64_t flags;
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t walk_end;  // output: where the walk stopped
  std::uint64_t found;
  std::uint64_t found_room;
  std::uint64_t most_pages;
  std::uint64_t category_inverted;
  std::uint64_t category_mask;
  std::uint64_t category_anyof_mask;
  std::uint64_t return_mask;
};
struct FoundPages {
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t categories;
};
constexpr unsigned long kPagemapScan = _IOWR('f', 16, ScanArguments);
constexpr std::uint64_t kProtectMatching = 1;
constexpr std::uint64_t kCheckWatched = 2;
constexpr std::uint64_t kWritten = 2;
constexpr std::uint64_t kPresent = 8;
static_assert(sizeof(ScanArguments) == 96 && sizeof(FoundPages) == 24);

}  // namespace

Result<PageScan> PageScan::open() {
  const int fd = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(os_error("cannot open /proc/self/pagemap", errno));
  return PageScan(fd);
}

PageScan::PageScan(PageScan&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

PageScan::~PageScan() {
  if (fd_ >= 0) ::close(fd_);
}

Result<std::vector<PageRange>> PageScan::written_and_protect(PageRange range) const {
  return written(range, kProtectMatching | kCheckWatched);
}

Result<std::vector<PageRange>> PageScan::unprotected(PageRange range) const {
  return written(range, 0);
}

Result<std::vector<PageRange>> PageScan::written(PageRange range, std::uint64_t flags) const {
  std::vector<PageRange> written;
  std::array<FoundPages, 512> found;
  ScanArguments arguments{};
  arguments.size = sizeof arguments;
  arguments.flags = flags;
  arguments.end = range.end;
  arguments.found = reinterpret_cast<std::uintptr_t>(found.data());
  arguments.found_room = found.size();
  // The condition is "written or not present": when a page is discarded, the mark of its write is
  // lost.
  arguments.category_inverted = kPresent;
  arguments.category_anyof_mask = kWritten | kPresent;
  arguments.return_mask = kWritten;
  for (std::uint64_t at = range.begin; at < range.end; at = arguments.walk_end) {
    arguments.start = at;
    arguments.walk_end = at;
    const int count = ::ioctl(fd_, kPagemapScan, &arguments);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(os_error("cannot ask which pages were written", errno));
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      if (!written.empty() && written.back().end == found[i].start) {
        written.back().end = found[i].end;
      } else {
        written.push_back({found[i].start, found[i].end});
      }
    }
    if (arguments.walk_end <= at) return fail(Code::io, "a scan of pages did not advance");
  }
  return written;
}

Result<bool> PageScan::has_unprotected(PageRange range) const {
  FoundPages found{};
  ScanArguments arguments{};
  arguments.size = sizeof arguments;
  arguments.start = range.begin;
  arguments.end = range.end;
  arguments.found = reinterpret_cast<std::uintptr_t>(&found);
  arguments.found_room = 1;
  arguments.most_pages = 1;
  arguments.category_mask = kWritten;
  arguments.return_mask = kWritten;
  int count = -1;
  do {
    count = ::ioctl(fd_, kPagemapScan, &arguments);
  } while (count < 0 && errno == EINTR);
  if (count < 0) return fail(os_error("cannot ask which pages are protected", errno));
  return count > 0;
}

}  // namespace diapause::sys
