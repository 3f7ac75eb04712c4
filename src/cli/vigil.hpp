// Watches whether a running command makes progress; `diapause run` asks regularly. Reads /proc and
// the tiers, and changes nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/arguments.hpp"

namespace diapause::cli {

// Finds launchers of MPI programs (mpirun, srun, ...) that are still there when everything that
// they started has ended, because they hang in their own clean-up.
class LauncherVigil {
 public:
  // An action against one of them.
  struct Order {
    std::int64_t process;
    std::string name;
    int signal;  // SIGTERM, and SIGKILL if that does not help
  };

  // `linger_s` is how long a launcher may take for its clean-up; 0 means unlimited.
  explicit LauncherVigil(double linger_s) : linger_s_(linger_s) {}

  // Examines a process and all its descendants at the given time (sys::monotonic_s()).
  std::vector<Order> look(std::int64_t leader, double now_s);

 private:
  std::optional<Order> judge(std::int64_t process, const std::string& name, bool has_children,
                             double now_s);

  const double linger_s_;
  std::set<std::int64_t> had_children_;
  std::map<std::int64_t, double> alone_since_s_;
  std::map<std::int64_t, double> told_s_;
};

// Detects that jobs leave nothing new: no line in a ledger, and no file of a version.
class ProgressVigil {
 public:
  // `stall_s` is how long that may last; 0 means unlimited.
  ProgressVigil(const Places& places, double stall_s) : places_(places), stall_s_(stall_s) {}

  bool has_stalled(double now_s);
  void begin_anew() { last_.reset(); }  // the time until now does not count

 private:
  // Returns what the jobs have left; nullopt: the configuration does not tell where to look.
  std::optional<std::string> footprint() const;

  const Places& places_;
  const double stall_s_;
  std::optional<std::string> last_;
  double changed_s_ = 0;
  double looked_s_ = 0;
};

}  // namespace diapause::cli
