#include "sys/unseen_writers.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string_view>

namespace diapause::sys {
namespace {

// This value marks the library's own rings: the data that such a ring would send on changes, if it
// ever sent any.
constexpr int kMark = SIGSTKFLT;

void put(std::string& text, const std::string& reason) {
  if (text.empty()) text = reason;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc() ? std::optional(value) : std::nullopt;
}

// Returns the number in a line that begins with `key`, such as "VmPin:        1024 kB" or
// "TracerPid:     0".
std::optional<std::uint64_t> number_behind(const std::string& line, const std::string& key) {
  if (!line.starts_with(key)) return std::nullopt;
  return number_in(
      std::string_view(line).substr(std::min(line.find_first_of("0123456789"), line.size())));
}

void look_at_status(const std::string& process, UnseenWriters& found) {
  std::ifstream status(process + "/status");
  if (!status) return put(found.past_protection, "nobody says whether its memory is pinned");
  for (std::string line; std::getline(status, line);) {
    if (number_behind(line, "VmPin:").value_or(0) != 0) {
      put(found.past_protection,
          "memory of this process is pinned for io_uring or a device (VmPin)");
    }
    if (number_behind(line, "TracerPid:").value_or(0) != 0)
      put(found.cannot_wait, "a debugger is attached");
  }
}

void look_at_mappings(const std::string& process, UnseenWriters& found) {
  std::ifstream maps(process + "/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/[aio]") != std::string::npos) {
      put(found.past_protection,
          "this process has asynchronous I/O (io_setup) that may be under way");
    }
  }
}

bool is_memory_of_a_process(const std::string& target) {
  return target.starts_with("/proc/") && target.ends_with("/mem");
}

void look_at_file(const std::string& target, const std::string& name, UnseenWriters& found) {
  if (is_memory_of_a_process(target)) put(found.cannot_wait, "the program has " + target + " open");
  const bool is_ring = target == "anon_inode:[io_uring]";
  const int fd = is_ring ? static_cast<int>(number_in(name).value_or(0)) : 0;
  if (is_ring && ::fcntl(fd, F_GETSIG) != kMark) {
    put(found.past_protection, "the program has an io_uring, which may have reads under way");
  }
}

void look_at_files(const std::string& process, UnseenWriters& found) {
  const std::string path = process + "/fd";
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(path.c_str()), ::closedir);
  if (!stream) return put(found.past_protection, "nobody says which files this process has open");
  while (const dirent* const entry = ::readdir(stream.get())) {
    std::array<char, 64> target{};  // the targets looked for are short
    const ssize_t length =
        ::readlinkat(::dirfd(stream.get()), entry->d_name, target.data(), target.size());
    if (length > 0)
      look_at_file({target.data(), static_cast<std::size_t>(length)}, entry->d_name, found);
  }
}

}  // namespace

UnseenWriters find_unseen_writers(const std::string& process) {
  UnseenWriters found;
  look_at_status(process, found);
  look_at_mappings(process, found);
  look_at_files(process, found);
  return found;
}

void mark_own_ring(int fd) { ::fcntl(fd, F_SETSIG, kMark); }

}  // namespace diapause::sys
