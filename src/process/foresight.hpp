// Flags of mappings that were read while their process still ran. Only smaps tells flags, and the
// kernel looks at every page for it, which takes most of the time that a copy of the page tables
// does. What was foreseen counts only when it has been confirmed.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "process/proc.hpp"

namespace diapause::process {

class Foresight {
 public:
  // Reads the flags of the mappings of those processes that have much memory.
  static Foresight of(const std::vector<pid_t>& processes);
  // Returns the mappings of a process, which stands still now, with flags as far as its mappings
  // are the foreseen ones. Otherwise its flags are read now.
  Result<std::vector<Mapping>> mappings_of(pid_t process, const ProcStatus& status);

  // Compares the foreseen flags with those that `now` has, which is the process itself or a copy of
  // it that has been forked since. Fails with Code::again if they differ.
  Status confirm(pid_t process, pid_t now) const;

 private:
  std::map<pid_t, std::vector<Mapping>> foreseen_;
  std::map<pid_t, std::vector<Mapping>> used_;
};

}  // namespace diapause::process
