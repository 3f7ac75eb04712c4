#include "sys/mappings.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "sys/file.hpp"
#include "sys/memory.hpp"

namespace diapause::sys {
namespace {

// A line such as "7f5c-7f5d rw-p 00000000 00:00 0   [heap]" has address range, rights and sharing,
// offset, device, inode and name.
struct Line {
  PageRange range;
  std::string_view rights;
  std::string_view inode;
  std::string_view name;
};

std::string_view next_word(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const std::string_view word = rest.substr(0, rest.find(' '));
  rest.remove_prefix(word.size());
  return word;
}

bool parse(std::string_view text, Line& line) {
  const std::string_view addresses = next_word(text);
  const char* end = addresses.data() + addresses.size();
  const auto first = std::from_chars(addresses.data(), end, line.range.begin, 16);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '-') return false;
  if (std::from_chars(first.ptr + 1, end, line.range.end, 16).ec != std::errc{}) return false;
  line.rights = next_word(text);
  next_word(text);  // offset
  next_word(text);  // device
  line.inode = next_word(text);
  line.name = text.substr(std::min(text.find_first_not_of(' '), text.size()));
  return true;
}

Result<std::string> read_all(Kernel& kernel, const char* path) {
  const int fd = kernel.openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return fail(os_error(std::string("cannot read ") + path, -fd));
  const File file(kernel, fd, path);
  std::string text;
  while (true) {
    constexpr std::size_t kPiece = std::size_t{64} * 1024;
    const std::size_t before = text.size();
    text.resize(before + kPiece);
    const std::int64_t got =
        kernel.pread(fd, std::as_writable_bytes(std::span(text)).subspan(before), before);
    if (got < 0 && got != -EINTR)
      return fail(os_error(std::string("cannot read ") + path, static_cast<int>(-got)));
    text.resize(before + static_cast<std::size_t>(std::max<std::int64_t>(got, 0)));
    if (got == 0) return text;
  }
}

}  // namespace

std::uint64_t page_bytes() { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

PageRange whole_pages_in(ByteView memory) {
  const std::uint64_t page = page_bytes();
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const PageRange pages{round_up(begin, page), (begin + memory.size()) / page * page};
  return pages.begin < pages.end ? pages : PageRange{};
}

PageRange pages_of(ByteView memory) {
  const std::uint64_t page = page_bytes();
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  return {begin / page * page, round_up(begin + memory.size(), page)};
}

// The advice is that of Linux 5.14, which older headers lack.
bool are_surely_readable(PageRange pages) {
  constexpr int kPopulateRead = 22;
  return ::madvise(reinterpret_cast<void*>(pages.begin), pages.bytes(), kPopulateRead) == 0;
}

bool are_surely_writable(PageRange pages) {
  constexpr int kPopulateWrite = 23;
  return ::madvise(reinterpret_cast<void*>(pages.begin), pages.bytes(), kPopulateWrite) == 0;
}

Result<Mappings> Mappings::read() {
  DIAPAUSE_TRY_ASSIGN(const std::string text, read_all(real_kernel(), "/proc/self/maps"));
  Mappings mappings;
  auto& known = mappings.private_anonymous_;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    Line line;
    if (!parse(std::string_view(text).substr(start, end - start), line)) {
      return fail(Code::io, "a line of /proc/self/maps is not understood");
    }
    start = end + 1;
    const std::string device = line.name.starts_with("/dev/") &&
                                       !line.name.starts_with("/dev/shm/") &&
                                       !line.name.starts_with("/dev/zero")
                                   ? std::string(line.name)
                                   : "";
    mappings.all_.push_back({line.range, line.rights.starts_with("r"),
                             line.rights.substr(1).starts_with("w"),
                             line.inode != "0" && device.empty(), device});
    if (line.inode != "0" || !line.rights.starts_with("rw") || !line.rights.ends_with('p'))
      continue;
    if (!known.empty() && known.back().end == line.range.begin) {
      known.back().end = line.range.end;
    } else {
      known.push_back(line.range);
    }
  }
  return mappings;
}

bool Mappings::is_private_anonymous(PageRange range) const {
  const auto behind =
      std::ranges::upper_bound(private_anonymous_, range.begin, {}, &PageRange::begin);
  return behind != private_anonymous_.begin() && std::prev(behind)->end >= range.end;
}

std::string Mappings::why_unreadable(ByteView memory) const {
  return why_refused(memory, Right::read);
}
std::string Mappings::why_unwritable(ByteView memory) const {
  return why_refused(memory, Right::write);
}

std::string Mappings::why_refused(ByteView memory, Right right) const {
  if (memory.empty()) return "";
  auto at = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t end = at + memory.size();
  auto mapping =
      std::ranges::upper_bound(all_, at, {}, [](const Mapping& one) { return one.range.end; });
  for (; at < end; ++mapping) {
    if (mapping == all_.end() || mapping->range.begin > at)
      return fmt::format("no memory at {:#x}{}", at, hint());
    const bool allowed = right == Right::read ? mapping->is_readable : mapping->is_writable;
    if (!allowed && !mapping->device.empty()) {
      return fmt::format("the memory at {:#x} belongs to the device {}", at, mapping->device);
    }
    if (!allowed && mapping->is_readable)
      return fmt::format("the memory at {:#x} is read-only", at);
    if (!allowed)
      return fmt::format("the memory at {:#x} is protected from every access (PROT_NONE){}", at,
                         hint());
    // A file may have become shorter since it was mapped, which takes the pages at its end.
    std::byte room{};
    const auto* const last =
        reinterpret_cast<const std::byte*>(std::min(end, mapping->range.end) - 1);  // NOLINT
    if (mapping->is_file && !copy_if_mapped(MutableBytes(&room, 1), ByteView(last, 1))) {
      return fmt::format("the file that is mapped at {:#x} has become too short", at);
    }
    at = mapping->range.end;
  }
  return "";
}

// Returns a remark on GPUs if this process uses one. Memory of a GPU has addresses that no
// processor can use, or that the driver does not let it use.
std::string Mappings::hint() const {
  const auto gpu = std::ranges::find_if(all_, [](const Mapping& one) {
    return one.device.starts_with("/dev/nvidia") || one.device.starts_with("/dev/kfd") ||
           one.device.starts_with("/dev/dri/");
  });
  if (gpu == all_.end()) return "";
  return fmt::format(
      ", which may be an address of a GPU ({} is in use): copy such data to the host's memory "
      "first",
      gpu->device);
}

std::string why_ends_are_unreadable(ByteView memory) {
  if (memory.empty()) return "";
  std::byte room{};
  const MutableBytes to(&room, 1);
  if (copy_if_mapped(to, memory.first(1)) && copy_if_mapped(to, memory.last(1))) return "";
  const auto mappings = Mappings::read();
  return mappings ? mappings->why_unreadable(memory) : "";
}

}  // namespace diapause::sys
