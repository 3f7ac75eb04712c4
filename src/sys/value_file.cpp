#include "sys/value_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "sys/robust.hpp"

namespace diapause::sys {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Compares names with digits as numbers: of two runs of digits, the longer one is greater.
bool comes_before(const std::string& a, const std::string& b) {
  std::size_t i = 0;
  while (i < a.size() && i < b.size() && a[i] == b[i]) ++i;
  const auto digits = [i](const std::string& text) {
    std::size_t end = i;
    while (end < text.size() && is_digit(text[end])) ++end;
    return end - i;
  };
  return digits(a) != digits(b) ? digits(a) < digits(b) : a < b;
}

}  // namespace

Result<ValueFile> ValueFile::open(Kernel& kernel, const std::string& path) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  const int fd = uninterrupted([&] { return kernel.openat(AT_FDCWD, path.c_str(), kFlags, 0); });
  if (fd < 0) return fail(path_error("read", path, fd));
  return ValueFile(File(kernel, fd, path));
}

Result<std::string> ValueFile::text(std::size_t most_bytes) const {
  constexpr std::size_t kFirstRoom = 4096;
  std::string text;
  std::size_t size = 0;
  while (size < most_bytes) {
    if (size == text.size()) text.resize(std::min(most_bytes, std::max(2 * size, kFirstRoom)));
    const MutableBytes rest = std::as_writable_bytes(std::span(text).subspan(size));
    const auto got = uninterrupted([&] { return file_.kernel().pread(file_.fd(), rest, size); });
    if (got < 0) return fail(path_error("read", path(), got));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

Result<std::string_view> ValueFile::head(std::span<char> place) const {
  const auto got = uninterrupted(
      [&] { return file_.kernel().pread(file_.fd(), std::as_writable_bytes(place), 0); });
  if (got < 0) return fail(path_error("read", path(), got));
  return std::string_view(place.data(), static_cast<std::size_t>(got));
}

Result<std::uint64_t> ValueFile::number() const {
  std::array<char, 32> digits{};
  DIAPAUSE_TRY_ASSIGN(const std::string_view text, head(digits));
  return number_in(text, path());
}

Result<std::string> read_value(Kernel& kernel, const std::string& path) {
  DIAPAUSE_TRY_ASSIGN(const ValueFile file, ValueFile::open(kernel, path));
  return file.text();
}

Result<std::uint64_t> read_number(Kernel& kernel, const std::string& path) {
  DIAPAUSE_TRY_ASSIGN(const ValueFile file, ValueFile::open(kernel, path));
  return file.number();
}

Result<std::vector<std::string>> list_names(Kernel& kernel, const std::string& path) {
  const int fd = uninterrupted(
      [&] { return kernel.openat(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY, 0); });
  if (fd < 0) return fail(path_error("list", path, fd));
  const File directory(kernel, fd, path);
  std::vector<DirectoryEntry> entries;
  if (const int result = kernel.list(fd, &entries); result < 0)
    return fail(path_error("list", path, result));
  std::vector<std::string> names;
  for (DirectoryEntry& entry : entries) names.push_back(std::move(entry.name));
  std::sort(names.begin(), names.end(), comes_before);
  return names;
}

Result<std::uint64_t> number_in(std::string_view text, const std::string& path) {
  std::uint64_t value = 0;
  const char* const text_end = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), text_end, value);
  if (error == std::errc() && (end == text_end || *end == '\n' || *end == ' ')) return value;
  const std::string_view shown = text.substr(0, std::min<std::size_t>(text.find('\n'), 32));
  return fail(Code::corrupt,
              fmt::format("{} holds '{}', which is no number of 0 or more", path, shown));
}

}  // namespace diapause::sys
