#include "process/machine_files.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "process/proc.hpp"
#include "sys/cgroup.hpp"

namespace diapause::process {
namespace {

constexpr const char* kGroups = "/sys/fs/cgroup";

}  // namespace

// In version 1 of control groups each set of controllers has a mount of its own.
std::vector<std::string> paths_in_groups(std::string_view groups, std::string_view name) {
  std::vector<std::string> paths;
  for (const auto& [controllers, path] : sys::control_groups_in(groups)) {
    const std::string mount =
        controllers.empty() ? kGroups : fmt::format("{}/{}", kGroups, controllers);
    for (std::string_view group = path;; group = sys::group_above(group)) {
      paths.push_back(fmt::format("{}{}/{}", mount, group, name));
      if (group.empty()) break;
    }
  }
  return paths;
}

std::optional<MachineFile> open_instead(const std::string& path, int flags) {
  if (!path.starts_with("/sys/") || ::access(path.c_str(), F_OK) == 0) return std::nullopt;
  std::vector<std::string> others;
  if (path.starts_with(fmt::format("{}/", kGroups))) {
    others = paths_in_groups(read_proc("/proc/self/cgroup").value_or(""),
                             path.substr(path.find_last_of('/') + 1));
  }
  others.emplace_back("/dev/null");
  for (std::string& other : others) {
    const int file = ::open(other.c_str(), flags);
    if (file >= 0) return MachineFile{std::move(other), file};
  }
  return std::nullopt;
}

}  // namespace diapause::process
