// The expected cost of a pattern of checkpoints of several levels, with memoryless failures.
//
// A level protects against a class of failures: 1 against the program or a process, 2 a node, 3
// several nodes, 4 the system. After a failure of a class, the newest checkpoint of its level or a
// deeper one is restored. Patterns are nested: every n2-th checkpoint of level 1 is one of level 2
// instead, every n3-th of those is one of level 3, and so on:
//
//   every = {1, 3, 2}     work 1 work 1 work 2 work 1 work 1 work 3, and again
//
// Every checkpoint includes level 1 if the job has that level, and otherwise only its own level. So
// a failure of a node directly after a checkpoint of level 4 costs a restart from level 4.
//
// The cost of a pattern is computed from blocks, the stretches between two checkpoints of a level
// or deeper ones. A block either succeeds, or is ended by a failure of a class that it cannot
// recover from; failures of its own class repeat it after a recovery. A block of level k is a
// sequence of n_k blocks of level k - 1, which is a geometric sum, so that a pattern of any length
// costs a few operations per level. This is Moody, Bronevetsky, Mohror, de Supinski, "Design,
// modeling, and evaluation of a scalable multi-level checkpointing system" (SC 2010), in closed
// form for nested patterns. With one level it equals one_level.hpp.
//
// With work in the background, a checkpoint blocks the program for `blocked_s` and is durable at
// its level `behind_s` later. Until then the program has lost the share `slowed` of its speed, and
// a failure restores the checkpoint before. From the moment a checkpoint is durable until the next
// one is, a failure costs the recovery, the work that had been done while the checkpoint became
// durable, (1 - slowed) behind_s, and then the same stretch again. That is exact for one level.
// With several levels, that work is counted as a number of blocks of the shallower levels, which
// need not be whole.
#pragma once

#include <cstddef>
#include <vector>

namespace diapause::model {

inline constexpr std::size_t kMostLevels = 6;

// The power of all nodes of the job together.
struct Powers {
  double compute_w = 1;
  double checkpoint_w = 1;  // while the program is blocked by a checkpoint
  double restart_w = 1;
  double idle_w = 1;  // while no work is possible after a failure
  // The additional power, beside compute_w, while a checkpoint is made durable in the background.
  double behind_w = 0;
};

// Seconds by activity.
struct Times {
  double computing_s = 0;      // useful work, and work that is lost and repeated
  double slowed_s = 0;         // lost by the program to work in the background
  double checkpointing_s = 0;  // the program is blocked
  double restarting_s = 0;
  double down_s = 0;
  double behind_s = 0;  // in parallel with the program, so it is no part of the wall time

  double wall_s() const { return computing_s + slowed_s + checkpointing_s + restarting_s + down_s; }
  double joules(const Powers& powers) const;
  Times& operator+=(const Times& more);
  friend Times operator*(double factor, Times times);
};

// One level of checkpoints and the failures that it protects against. All times are in seconds and
// not negative.
struct Level {
  int number = 1;  // the number that users know
  // Blocked time of the program for a checkpoint of this level with all that it includes.
  double blocked_s = 0;
  double behind_s = 0;        // after that, until it is durable at this level
  double slowed = 0;          // share of its speed that the program loses meanwhile, 0 to below 1
  double restart_s = 0;       // when restarting from a checkpoint of this level
  double downtime_s = 0;      // after a failure of this class, before a restart can begin
  double failures_per_s = 0;  // rate of this class, for all nodes of the job together
};

// Of every[i] checkpoints of levels[i - 1] or deeper, one is of levels[i] or deeper. every[0] is 1.
// The numbers need not be whole: the cost is a smooth function of them.
struct Pattern {
  double work_s = 0;  // work between two checkpoints
  std::vector<double> every;

  double work_of_all_s() const;  // work in the whole pattern
  // Useful work between two checkpoints of levels[level] or deeper.
  double period_work_s(std::size_t level) const;
};

struct Cost {
  double work_s = 0;  // useful work in the pattern
  Times times;        // expected times of it

  double rework_s() const { return times.computing_s - work_s; }
  double wall_per_work() const { return times.wall_s() / work_s; }
  double watts_per_work(const Powers& powers) const { return times.joules(powers) / work_s; }
};

// Returns the cost of a pattern. `levels` are ordered from the shallowest to the deepest, 1 to
// kMostLevels; the deepest one recovers from everything. `pattern.every` has a number for each
// level. The cost is infinite if failures are so frequent that no work is ever completed.
Cost cost_of(const std::vector<Level>& levels, const Pattern& pattern);

// Returns the levels that a job has. `present` has a value for each of `levels`. Failures of a
// class whose level is absent are added to the next deeper level that is present. Rates of classes
// deeper than the deepest present level are dropped, because no checkpoint protects against them.
std::vector<Level> only_present(const std::vector<Level>& levels, const std::vector<bool>& present);

}  // namespace diapause::model
