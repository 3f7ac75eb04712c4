// Decides when a checkpoint is due and at which level, as a pure function of what the ranks agreed
// on.
//
// In every snapshot call the engine does, on all ranks alike:
//
//   if (schedule.tick()) {
//     now_s, times = rank 0's clock and schedule.times(), broadcast;
//     schedule.follow(times);
//     level = schedule.decide(now_s);
//   } else {
//     level = schedule.calls_due();
//   }
//   if (level > 0) {
//     take a checkpoint;
//     schedule.taken_at_own_time(level, this rank's clock after it);
//   }
//
// If all intervals are in calls, tick() is never true and the decision needs no communication,
// unless the ranks must also agree on events that may occur at any time: agree_every().
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "config/settings.hpp"
#include "policy/pace.hpp"

namespace diapause::policy {

// Returns how many nodes a level needs at least.
std::size_t nodes_needed(const config::Settings& settings, int level);

// The state of the intervals, equal on all ranks at agreed calls. Every time that is passed, except
// where a function says otherwise, must be rank 0's and the same on all ranks; otherwise the ranks
// would disagree on when to agree, and wait for each other for ever. docs/decisions has the reason
// for this design: a collective in every iteration would cost more than the checkpoints.
class Schedule {
 public:
  explicit Schedule(const config::Settings& settings);

  // Counts a snapshot call; must be called in each, on all ranks alike. Returns true if the ranks
  // agree on the time at this call (rank 0 broadcasts its clock, then all call decide()). Otherwise
  // nothing is due by time, and nothing needs to be done unless calls_due() is not 0.
  bool tick();

  // Returns the highest level that is due at this call by call counts alone, or 0 if none is. It is
  // equal on all ranks without communication.
  int calls_due() const;

  // `now_s` is rank 0's clock in seconds since open. Returns the highest level due, by time or by
  // calls (0: none), and plans the next agreed call: after half of the calls expected until the
  // next level is due, at least 1, at most kMaxStride, and never further ahead than the calls
  // counted so far. So a level is late by less than one call if calls keep their duration; if calls
  // become longer than estimated, it is late by at most half of the error in the time that was
  // left. A clock that steps back is taken to have stood still; one that jumps ahead is taken to be
  // right.
  int decide(double now_s);

  // Reports that a checkpoint at `level` ended at `now_s`, in a snapshot or not. The intervals of
  // all levels up to it start again. Must also be called after a failed attempt, or else the level
  // stays due at every call. Level 0 has no effect.
  void taken(int level, double now_s);
  // Reports the same where a rank knows only its own time, so that nobody waits for rank 0 at the
  // end of a checkpoint. If time is needed, the ranks agree at the next call, and all follow() the
  // times of rank 0 before they decide.
  void taken_at_own_time(int level, double now_s);

  // Holds what a schedule knows of the past, as plain bytes.
  struct Times {
    std::array<double, 5> last_s{};  // when the interval of each level began
    double agreed_s = 0;
  };
  Times times() const { return {last_s_, agreed_s_}; }
  void follow(const Times& of_root);

  // Sets the pace of checkpoints for `schedule = "auto"`. Setting the present pace again has no
  // effect. Must be called alike on all ranks, with rank 0's pace.
  void follow(const Pace& pace);
  // Returns whether there is no pace yet and one is needed.
  bool wants_pace() const { return is_paced_ && pace_.number == 0; }

  // Makes the ranks agree also every so many seconds, as far as the duration of calls can be
  // predicted: if calls become k times as long, they agree after k times as many seconds. Must be
  // called alike on all ranks.
  void agree_every(double seconds);

  // Returns the estimated time until the next agreed call; 0 before a call was seen.
  double until_next_s() const;

  // Returns whether snapshot calls can ever make a checkpoint due.
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
  bool is_paced_;  // whether `pace_` decides, and not `intervals_`
  Pace pace_;      // if it is not set, nothing is due yet
  // Checkpoints since the last one of a level or a deeper one.
  std::array<std::uint64_t, 5> since_{};
  double agree_every_s_ = 0;  // 0 if the ranks agree only for the intervals
  std::uint64_t call_ = 0;
  std::uint64_t next_agreement_ = 1;
  double agreed_s_ = 0;  // the time and the call of the last agreement
  std::uint64_t agreed_call_ = 0;
  std::optional<double> call_s_;  // duration of a call; nullopt before one was seen
};

}  // namespace diapause::policy
