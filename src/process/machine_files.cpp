#include "process/machine_files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <sstream>

#include "process/proc.hpp"

namespace diapause::process {
namespace {

constexpr std::string_view kGroups = "/sys/fs/cgroup/";

void add_paths(const std::string& mount, std::string group, std::string_view name,
               std::vector<std::string>& paths) {
  while (true) {
    paths.push_back(mount + group + (group.ends_with('/') ? "" : "/") + std::string(name));
    if (group.empty() || group == "/") return;
    group.resize(group.find_last_of('/') == group.npos ? 0 : group.find_last_of('/'));
  }
}

}  // namespace

// A line is "4:cpu,cpuacct:/job/step" in version 1 of control groups, each of whose controllers has
// a mount of its own, and "0::/job/step" in version 2.
std::vector<std::string> paths_in_groups(std::string_view groups, std::string_view name) {
  std::vector<std::string> paths;
  std::istringstream lines{std::string(groups)};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string mount = std::string(kGroups.substr(0, kGroups.size() - 1));
    add_paths(controllers.empty() ? mount : mount + "/" + controllers, line.substr(second + 1),
              name, paths);
  }
  return paths;
}

std::optional<MachineFile> open_instead(const std::string& path, int flags) {
  if (!path.starts_with("/sys/") || ::access(path.c_str(), F_OK) == 0) return std::nullopt;
  std::vector<std::string> others;
  if (path.starts_with(kGroups)) {
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
