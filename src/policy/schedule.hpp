// When is a checkpoint due, and at which level: a pure function of what the ranks have agreed on.
#pragma once

#include <array>
#include <cstdint>

#include "config/settings.hpp"

namespace diapause::policy {

// The state of the intervals, equal on all ranks. Time comes from rank 0 and reaches the others only at agreed calls.
// docs/decisions has the reason: a collective in every iteration would cost more than the checkpoints.
class Schedule {
 public:
  explicit Schedule(const config::Settings& settings);

  // Must be called on every snapshot call, on all ranks alike. True: this is a call at which the ranks agree on the time
  // (rank 0 broadcasts its clock, then everybody calls `decide`). False: nothing can be due and nothing is to be done, unless `calls_due()` is not 0.
  bool tick();

  // Level due by call counts alone at this call (0: none). Equal on all ranks without communication.
  int calls_due() const;

  // `now_s`: rank 0's clock, seconds since open. Returns the highest level due (0: none) and plans the next agreed call:
  // half of the calls expected until the next level is due, at least 1, at most kMaxStride.
  int decide(double now_s);

  // A checkpoint at `level` was taken at `now_s` (snapshot or not): levels up to it start counting again.
  void taken(int level, double now_s);

  bool any_interval() const;

  static constexpr std::uint64_t kMaxStride = 65536;

 private:
  std::array<config::Interval, 5> intervals_;
  std::array<double, 5> last_s_{};
  std::array<std::uint64_t, 5> last_call_{};
  std::uint64_t call_ = 0;
  std::uint64_t next_agreement_ = 1;
  double last_agreement_s_ = 0;
  std::uint64_t last_agreement_call_ = 0;
};

}  // namespace diapause::policy
