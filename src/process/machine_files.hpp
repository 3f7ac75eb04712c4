// Files of /sys tell of a machine. Programs have them open by paths that another machine, or
// another allocation of it, may not have: language runtimes read the limits of their control group
// there.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace diapause::process {

struct MachineFile {
  std::string path;
  int file = -1;
};

// Opens what a program has instead of a file of /sys that is not here: the file of the same name in
// the control group of this process, or in one above it, and otherwise /dev/null. Returns nothing
// for a path elsewhere, or if it is here.
std::optional<MachineFile> open_instead(const std::string& path, int flags);

// Returns the paths of a file `name` in the control groups of a process and above, the nearest
// first. `groups` is the text of its /proc/<pid>/cgroup.
std::vector<std::string> paths_in_groups(std::string_view groups, std::string_view name);

}  // namespace diapause::process
