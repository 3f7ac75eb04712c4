// When is a checkpoint due, and at which level: a pure function of what the ranks have agreed on.
//
// In every snapshot call the engine does, on all ranks alike:
//
//   if (schedule.tick()) {
//     now_s = rank 0's clock, broadcast;
//     level = schedule.decide(now_s);
//   } else {
//     level = schedule.calls_due();
//   }
//   if (level > 0) {
//     take a checkpoint;
//     schedule.taken(level, rank 0's clock after it, broadcast);
//   }
//
// With intervals in calls only, tick() is never true and the decision needs no communication, unless something else may
// come at any time and is to be agreed on, too: agree_every().
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "config/settings.hpp"
#include "policy/pace.hpp"

namespace diapause::policy {

// The state of the intervals, equal on all ranks: every time it is given must be rank 0's and the same on all ranks, or
// they would stop agreeing on when to agree, and wait for each other for ever. docs/decisions has the reason: a
// collective in every iteration would cost more than the checkpoints.
class Schedule {
 public:
  explicit Schedule(const config::Settings& settings);

  // Must be called on every snapshot call, on all ranks alike, and counts it. True: this is a call at which the ranks
  // agree on the time (rank 0 broadcasts its clock, then everybody calls `decide`). False: nothing is due by time, and
  // nothing is to be done unless `calls_due()` is not 0.
  bool tick();

  // The highest level due by call counts alone at this call (0: none). Equal on all ranks without communication.
  int calls_due() const;

  // `now_s`: rank 0's clock, seconds since open. Returns the highest level due, by time or by calls (0: none), and
  // plans the next agreed call: half of the calls expected until the next level is due, at least 1, at most kMaxStride,
  // and never further ahead than the calls counted so far. So a level comes late by less than one call if calls keep
  // their duration; if they become longer than estimated, by at most half of the error in the time that was left. A
  // clock that steps back is taken to have stood still, one that jumps ahead to be right.
  int decide(double now_s);

  // A checkpoint at `level` ended at `now_s` (in a snapshot or not): the intervals of all levels up to it start again.
  // Also to be called when the attempt failed, or the level stays due at every call. Level 0 does nothing.
  void taken(int level, double now_s);

  // With `schedule = "auto"`: from now on checkpoints come at this pace. One that is followed already changes nothing.
  // To be called alike on all ranks, with what rank 0 has.
  void follow(const Pace& pace);
  // Whether there is a pace to wait for.
  bool wants_pace() const { return is_paced_ && pace_.number == 0; }

  // From now on the ranks also agree every so many seconds, as far as the duration of calls can be foreseen: if calls
  // become k times as long, after k times as many. To be called alike on all ranks.
  void agree_every(double seconds);

  // How long it is until the next agreed call, by estimate; 0 while no call was seen.
  double until_next_s() const;

  // Whether snapshot calls can ever make a checkpoint due.
  bool any_interval() const;

  static constexpr std::uint64_t kMaxStride = 65536;

 private:
  double forward(double now_s);
  void learn(double now_s);
  void plan(double now_s);
  std::optional<double> seconds_left(double now_s) const;
  int time_due(double now_s) const;

  std::array<config::Interval, 5> intervals_;
  std::array<double, 5> last_s_{};
  std::array<std::uint64_t, 5> last_call_{};
  bool is_paced_;                         // by `pace_`, and not by `intervals_`
  Pace pace_;                             // none: nothing is due yet
  std::array<std::uint64_t, 5> since_{};  // checkpoints behind the last of a level or a deeper one
  double agree_every_s_ = 0;              // 0: only for the intervals
  std::uint64_t call_ = 0;
  std::uint64_t next_agreement_ = 1;
  double agreed_s_ = 0;  // the last time the ranks agreed on, and the call
  std::uint64_t agreed_call_ = 0;
  std::optional<double> call_s_;  // what a call takes; none before it was seen
};

}  // namespace diapause::policy
