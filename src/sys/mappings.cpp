#include "sys/mappings.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "sys/file.hpp"

namespace diapause::sys {
namespace {

// "7f5c-7f5d rw-p 00000000 00:00 0   [heap]": address range, rights and sharing, offset, device, inode, name.
struct Line {
  PageRange range;
  std::string_view rights;
  std::string_view inode;
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
    const std::int64_t got = kernel.pread(fd, std::as_writable_bytes(std::span(text)).subspan(before), before);
    if (got < 0 && got != -EINTR) return fail(os_error(std::string("cannot read ") + path, static_cast<int>(-got)));
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
    if (line.inode != "0" || !line.rights.starts_with("rw") || !line.rights.ends_with('p')) continue;
    if (!known.empty() && known.back().end == line.range.begin) {
      known.back().end = line.range.end;
    } else {
      known.push_back(line.range);
    }
  }
  return mappings;
}

bool Mappings::is_private_anonymous(PageRange range) const {
  const auto behind = std::ranges::upper_bound(private_anonymous_, range.begin, {}, &PageRange::begin);
  return behind != private_anonymous_.begin() && std::prev(behind)->end >= range.end;
}

}  // namespace diapause::sys
