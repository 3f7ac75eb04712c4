// Whether a command that runs still gets anywhere: `diapause run` asks now and then. Reads /proc and the tiers, and
// changes nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/arguments.hpp"

namespace diapause::cli {

// Finds launchers of MPI programs (mpirun, srun, ...) that live on although nothing lives any more that they started:
// they hang in their own clean-up.
class LauncherVigil {
 public:
  // What is to be done about one of them.
  struct Order {
    std::int64_t process;
    std::string name;
    int signal;  // SIGTERM, and if that does not help, SIGKILL
  };

  // `linger_s`: how long a launcher may take for its clean-up; 0: for ever.
  explicit LauncherVigil(double linger_s) : linger_s_(linger_s) {}

  // Looks at a process and all that it has started, at that time (sys::monotonic_s()).
  std::vector<Order> look(std::int64_t leader, double now_s);

 private:
  std::optional<Order> judge(std::int64_t process, const std::string& name, bool has_children, double now_s);

  const double linger_s_;
  std::set<std::int64_t> had_children_;
  std::map<std::int64_t, double> alone_since_s_;
  std::map<std::int64_t, double> told_s_;
};

// Finds that jobs leave nothing new behind: no line in a ledger, and no file of a version.
class ProgressVigil {
 public:
  // `stall_s`: how long that may last; 0: for ever.
  ProgressVigil(const Places& places, double stall_s) : places_(places), stall_s_(stall_s) {}

  bool has_stalled(double now_s);
  void begin_anew() { last_.reset(); }  // what was until now does not count

 private:
  std::string footprint() const;

  const Places& places_;
  const double stall_s_;
  std::optional<std::string> last_;
  double changed_s_ = 0;
  double looked_s_ = 0;
};

}  // namespace diapause::cli
