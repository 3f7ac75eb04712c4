#include "sys/cgroup.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace diapause::sys {
namespace {

// These are the names that the two versions of control groups use for the same things.
struct Dialect {
  std::string_view limits[2];  // "max" or a huge number means no limit
  std::string_view usage;
  std::string_view reclaimable;  // key in memory.stat
};
constexpr Dialect kVersion2{{"memory.max", "memory.high"}, "memory.current", "inactive_file"};
constexpr Dialect kVersion1{
    {"memory.limit_in_bytes", ""}, "memory.usage_in_bytes", "total_inactive_file"};

std::optional<std::string> text_of(Kernel& kernel, const std::string& path) {
  const int fd = kernel.openat(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return std::nullopt;
  std::string text;
  std::int64_t got = 1;
  while (got > 0 || got == -EINTR) {
    constexpr std::size_t kPieceBytes = 16384;
    const std::size_t before = text.size();
    text.resize(before + kPieceBytes);
    got = kernel.pread(fd, std::as_writable_bytes(std::span(text)).subspan(before), before);
    text.resize(before + static_cast<std::size_t>(std::max<std::int64_t>(got, 0)));
  }
  kernel.close(fd);
  if (got < 0) return std::nullopt;
  return text;
}

std::optional<std::uint64_t> number_at(std::string_view text) {
  std::uint64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc()) return std::nullopt;  // "max" means no limit
  return value;
}

std::optional<std::uint64_t> number_of_file(Kernel& kernel, const std::string& path) {
  const auto text = text_of(kernel, path);
  return text ? number_at(*text) : std::nullopt;
}

// Calls `visit` with every line.
template <class Visit>
void for_each_line(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    visit(line);
  }
}

std::uint64_t reclaimable_in(Kernel& kernel, const std::string& group, std::string_view key) {
  std::uint64_t found = 0;
  for_each_line(text_of(kernel, group + "/memory.stat").value_or(""), [&](std::string_view line) {
    if (line.starts_with(key) && line.substr(key.size()).starts_with(' ')) {
      found = number_at(line.substr(key.size() + 1)).value_or(0);
    }
  });
  return found;
}

std::optional<MemoryRoom> room_in(Kernel& kernel, const std::string& group,
                                  const Dialect& dialect) {
  std::optional<std::uint64_t> limit;
  for (const std::string_view name : dialect.limits) {
    const auto one =
        name.empty() ? std::nullopt : number_of_file(kernel, group + "/" + std::string(name));
    if (one) limit = std::min(limit.value_or(*one), *one);
  }
  if (!limit) return std::nullopt;
  const auto usage = number_of_file(kernel, group + "/" + std::string(dialect.usage));
  if (!usage) return std::nullopt;
  const std::uint64_t needed =
      *usage - std::min(*usage, reclaimable_in(kernel, group, dialect.reclaimable));
  return MemoryRoom{*limit, *limit - std::min(*limit, needed)};
}

// Adds the memory of the group at `path` and of its parents. A process in a container may see its
// host's path while the container's own group lies at the mount, so groups that do not exist are
// skipped, and the mount itself is always read.
void add_rooms(Kernel& kernel, const std::string& mount, std::string_view path,
               const Dialect& dialect, std::vector<MemoryRoom>& rooms) {
  while (true) {
    const auto room = room_in(kernel, mount + std::string(path), dialect);
    if (room) rooms.push_back(*room);
    if (path.empty()) return;
    path = group_above(path);
  }
}

// Returns whether controllers such as "memory,hugetlb" include memory.
bool has_memory(std::string_view controllers) {
  while (!controllers.empty()) {
    const std::string_view one = controllers.substr(0, controllers.find(','));
    controllers.remove_prefix(std::min(one.size() + 1, controllers.size()));
    if (one == "memory") return true;
  }
  return false;
}

}  // namespace

// A line is "4:memory,hugetlb:/job/step", or "0::/job/step" in version 2.
std::vector<ControlGroup> control_groups_in(std::string_view text) {
  std::vector<ControlGroup> groups;
  for_each_line(text, [&](std::string_view line) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos) return;
    const std::string_view path = line.substr(second + 1);
    groups.push_back({line.substr(first + 1, second - first - 1), path == "/" ? "" : path});
  });
  return groups;
}

std::string_view group_above(std::string_view path) {
  const std::size_t end = path.find_last_of('/');
  return path.substr(0, end == path.npos ? 0 : end);
}

std::vector<MemoryRoom> memory_of_cgroups(Kernel& kernel) {
  std::vector<MemoryRoom> rooms;
  const std::string text = text_of(kernel, "/proc/self/cgroup").value_or("");
  for (const auto& [controllers, path] : control_groups_in(text)) {
    if (controllers.empty()) {
      add_rooms(kernel, "/sys/fs/cgroup", path, kVersion2, rooms);
      add_rooms(kernel, "/sys/fs/cgroup/unified", path, kVersion2, rooms);
    }
    if (has_memory(controllers)) add_rooms(kernel, "/sys/fs/cgroup/memory", path, kVersion1, rooms);
  }
  return rooms;
}

}  // namespace diapause::sys
