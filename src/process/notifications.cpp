// Dumps what the inotify descriptors of a process watch. The kernel names watched files by their
// inodes, so their paths are looked for where programs usually have them from.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <set>

#include "process/borrowed.hpp"
#include "process/dump_parts.hpp"

namespace diapause::process {
namespace {

using File = std::pair<dev_t, ino_t>;

constexpr std::size_t kMostEntries = 50'000;  // for directories that are searched

std::uint64_t hexadecimal_behind(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  std::uint64_t number = 0;
  if (at != std::string_view::npos)
    std::from_chars(line.data() + at + key.size(), line.data() + line.size(), number, 16);
  return number;
}

struct Wanted {
  FileWatch watch;
  File file;
  ByteVector handle;  // struct file_handle
};

ByteVector handle_of(std::string_view line) {
  const std::uint64_t bytes = hexadecimal_behind(line, "fhandle-bytes:");
  const auto type = static_cast<int>(hexadecimal_behind(line, "fhandle-type:"));
  const std::size_t at = line.find("f_handle:");
  if (at == std::string_view::npos || bytes == 0 || bytes > MAX_HANDLE_SZ) return {};
  const std::string_view digits = line.substr(at + 9);
  if (digits.size() < 2 * bytes) return {};
  ByteVector handle(sizeof(file_handle) + bytes);
  const auto length = static_cast<unsigned>(bytes);
  std::memcpy(handle.data(), &length, sizeof length);
  std::memcpy(handle.data() + sizeof length, &type, sizeof type);
  for (std::size_t i = 0; i < bytes; ++i) {
    std::uint8_t value = 0;
    std::from_chars(digits.data() + 2 * i, digits.data() + 2 * i + 2, value, 16);
    handle[sizeof(file_handle) + i] = static_cast<std::byte>(value);
  }
  return handle;
}

// Parses "3 ino:9e7e sdev:800013 mask:800afce ignored_mask:0 fhandle-bytes:8 fhandle-type:1
// f_handle:7e9e00...", in which all numbers are hexadecimal.
Wanted parse_watch(const std::string& line, std::uint32_t description) {
  constexpr std::uint64_t kEvents = IN_ALL_EVENTS | IN_EXCL_UNLINK | IN_ONESHOT;
  Wanted wanted;
  wanted.watch.description = description;
  wanted.watch.number = static_cast<std::uint32_t>(hexadecimal_behind(line, ""));
  wanted.watch.events = static_cast<std::uint32_t>(hexadecimal_behind(line, "mask:") & kEvents);
  const std::uint64_t device =
      hexadecimal_behind(line, "sdev:");  // 20 bits of it are the minor number
  wanted.file = {
      makedev(static_cast<unsigned>(device >> 20), static_cast<unsigned>(device & 0xfffff)),
      hexadecimal_behind(line, "ino:")};
  wanted.handle = handle_of(line);
  return wanted;
}

std::optional<File> file_at(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return std::nullopt;
  return File{found.st_dev, found.st_ino};
}

// Opens the file by its handle, which root may do, and asks for its path. `near` is on the same
// file system.
std::string path_by_handle(const Wanted& wanted, const std::string& near) {
  if (wanted.handle.empty()) return "";
  const int mount = ::open(near.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (mount < 0) return "";
  ByteVector handle = wanted.handle;
  const int file =
      ::open_by_handle_at(mount, reinterpret_cast<file_handle*>(handle.data()), O_PATH | O_CLOEXEC);
  ::close(mount);
  if (file < 0) return "";
  const std::string path = read_link(fmt::format("/proc/self/fd/{}", file)).value_or("");
  ::close(file);
  return file_at(path) == wanted.file ? path : "";
}

// Searches directories from the given paths on, those of the process first.
class Search {
 public:
  explicit Search(std::vector<Wanted>& wanted) {
    for (Wanted& one : wanted) missing_.insert({one.file, &one});
  }
  bool is_done() const { return missing_.empty(); }

  void look_at(const std::string& path) {
    if (is_done() || !path.starts_with('/') || !seen_.insert(path).second) return;
    struct stat found {};
    if (::lstat(path.c_str(), &found) != 0) return;
    take({found.st_dev, found.st_ino}, path);
    for (auto one = missing_.begin(); one != missing_.end();) {
      const std::string by_handle =
          found.st_dev == one->first.first ? path_by_handle(*one->second, path) : "";
      if (!by_handle.empty()) one->second->watch.path = by_handle;
      one = by_handle.empty() ? std::next(one) : missing_.erase(one);
    }
    if (S_ISDIR(found.st_mode)) directories_.push_back(path);
    const std::size_t end = path.rfind('/');
    if (path != "/") look_at(end == 0 ? "/" : path.substr(0, end));
  }

  void look_into_directories() {
    for (std::size_t entries = 0; !directories_.empty() && !is_done() && entries < kMostEntries;) {
      const std::string directory = std::move(directories_.front());
      directories_.pop_front();
      DIR* const open = ::opendir(directory.c_str());
      if (open == nullptr) continue;
      while (const dirent* const entry = ::readdir(open)) {
        if (++entries > kMostEntries) break;
        look_at_entry(directory, *entry);
      }
      ::closedir(open);
    }
  }

 private:
  void look_at_entry(const std::string& directory, const dirent& entry) {
    const std::string_view name = entry.d_name;
    if (name == "." || name == "..") return;
    const std::string path = (directory == "/" ? "" : directory) + "/" + std::string(name);
    const bool may_be_wanted = std::ranges::any_of(
        missing_, [&](const auto& one) { return one.first.second == entry.d_ino; });
    if (may_be_wanted) {
      if (const auto file = file_at(path)) take(*file, path);
    }
    if (entry.d_type == DT_DIR && seen_.insert(path).second) directories_.push_back(path);
  }

  void take(const File& file, const std::string& path) {
    const auto [begin, end] = missing_.equal_range(file);
    for (auto one = begin; one != end; ++one) one->second->watch.path = path;
    missing_.erase(begin, end);
  }

  std::multimap<File, Wanted*> missing_;
  std::set<std::string> seen_;
  std::deque<std::string> directories_;
};

// Calls `take` with each text of a list in /proc that is separated by NUL.
template <class Take>
void for_each_text(const std::string& path, const Take& take) {
  const std::string all = read_proc(path).value_or("");
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find('\0', begin), all.size());
    take(all.substr(begin, end - begin));
    begin = end + 1;
  }
}

void search_all(Search& search, const FrozenProcess& frozen) {
  const std::string directory = fmt::format("/proc/{}", frozen.here);
  const std::string current = read_link(directory + "/cwd").value_or("/");
  search.look_at(current);
  for (const pid_t number : numbers_in(directory + "/fd").value_or(std::vector<pid_t>{})) {
    search.look_at(read_link(fmt::format("{}/fd/{}", directory, number)).value_or(""));
  }
  for_each_text(directory + "/cmdline", [&](const std::string& text) {
    search.look_at(text.starts_with('/') ? text : current + "/" + text);
  });
  for_each_text(directory + "/environ",
                [&](const std::string& text) { search.look_at(text.substr(text.find('=') + 1)); });
  for (const char* const usual :
       {"/etc", "/tmp", "/var/tmp", "/run", "/dev", "/dev/shm", "/sys/class"})
    search.look_at(usual);
  search.look_into_directories();
}

}  // namespace

Status dump_watches(DumpWork& work, const FrozenProcess& frozen, const Found& found) {
  DIAPAUSE_TRY_ASSIGN(const Borrowed notifications, Borrowed::of(found.here, found.number));
  int waiting = 0;
  if (::ioctl(notifications.number(), FIONREAD, &waiting) == 0 && waiting > 0) {
    work.refuse_for_now(
        frozen.status,
        fmt::format("has descriptor {} (anon_inode:inotify), in which events wait to be "
                    "read: try again",
                    found.number));
  }
  const auto description = static_cast<std::uint32_t>(work.result.job.descriptions.size());
  std::vector<Wanted> wanted;
  for (const std::string& line : values_in(found.details, "inotify wd")) {
    wanted.push_back(parse_watch(line, description));
  }
  Search search(wanted);
  if (!search.is_done()) search_all(search, frozen);
  for (Wanted& one : wanted) {
    if (one.watch.path.empty()) {
      work.refuse(
          frozen.status,
          fmt::format("has descriptor {} (anon_inode:inotify), which watches a file whose path "
                      "is not known (inode {})",
                      found.number, one.file.second));
    }
    work.result.job.watches.push_back(std::move(one.watch));
  }
  return {};
}

}  // namespace diapause::process
