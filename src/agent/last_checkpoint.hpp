// Says when a job has to stop, and at which level its last checkpoint still fits.
// policy/deadline.hpp decides, as for programs that use the library.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>

#include "agent/job_store.hpp"
#include "policy/deadline.hpp"

namespace diapause::agent {

class LastCheckpoint {
 public:
  explicit LastCheckpoint(const JobStore& store);

  bool is_asked_for_by(int signal) const { return signals_.contains(signal); }
  // Returns the seconds until the last checkpoint has to begin, with the memory that the job now
  // has on this node; nullopt if the end of the allocation is not known, or nobody waits for it any
  // more. `first` is process 1 of the job.
  std::optional<double> due_in_s(pid_t first) const;
  // Returns how long the job can still go on. `signal` is the one that has come, or 0.
  double left_s(int signal) const;
  // Returns the deepest level that then fits.
  int level(std::uint64_t bytes, double left_s) const;

  // Records that a checkpoint of `bytes` on all nodes reached `level` in `seconds`.
  void learn(int level, std::uint64_t bytes, double seconds) {
    times_.learn(level, bytes, seconds);
  }
  // The end of the allocation is not waited for any more.
  void forget_end() { end_s_.reset(); }

 private:
  policy::LevelSeconds expected(std::uint64_t bytes) const;  // `bytes` are those on each node

  const JobStore& store_;
  std::set<int> signals_;
  std::optional<double> end_s_;  // when the allocation ends, by the monotonic clock
  double whole_s_ = 0;           // time that was left of it at the start
  policy::CheckpointTimes times_;
};

// Returns the bytes of memory that the processes of a job have written to. `first` is its process
// 1.
std::uint64_t memory_of_job(pid_t first);

}  // namespace diapause::agent
