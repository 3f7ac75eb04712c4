// Tells versions of a job that was failing already from others. When a rank dies, its launcher ends
// the rest of the job, which takes a while. A version that was stored meanwhile is whole, but what
// is restored from it ends at once.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "process/state.hpp"

namespace diapause::agent {

class Probation {
 public:
  static constexpr double kLimit_s = 10;

  // Returns whether a process of the last version has ended since, or one that has ended here was
  // killed by a signal. Programs do that, too, so it counts only if the job then fails.
  bool lacks_processes(const process::Job& job) const;
  // The job goes on at this time, having been restored from a version.
  void restored(const process::Job& job, double now_s);
  // A version was stored. It is `doubtful` if lacks_processes() holds on a node.
  void stored(const process::Job& job, bool doubtful, double now_s);
  // Returns whether the last version may turn out to be of a failing job.
  bool is_doubtful(double now_s) const { return is_doubtful_ && now_s < since_s_ + kLimit_s; }
  // Returns after how many seconds the job has failed, if that puts its last version in doubt. Of a
  // version from which it was restored, nothing else need be known.
  std::optional<double> fails(double now_s) const;

 private:
  std::set<std::uint32_t> living_;  // processes of the last version
  double since_s_ = 0;
  bool is_doubtful_ = false;
};

}  // namespace diapause::agent
