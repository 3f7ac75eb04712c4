// What a pattern of checkpoints of several levels costs, in expectation, with failures without memory.
//
// A level stands against a class of failures: 1 the program or a process, 2 a node, 3 several nodes, 4 the system. A
// failure of a class goes back to the newest checkpoint of its level or a deeper one. Patterns are nested: every n2-th
// checkpoint of level 1 is one of level 2 instead, every n3-th of those one of level 3, and so on:
//
//   every = {1, 3, 2}     work 1 work 1 work 2 work 1 work 1 work 3, and again
//
// Every checkpoint has level 1 in it, if the job has that, and else only its own level: a failure of a node right after
// a checkpoint of level 4 goes back to it at the cost of a restart from level 4.
//
// The cost of a pattern follows from blocks, the stretches between two checkpoints of a level or deeper ones. A block
// either succeeds, or is left by a failure of a class that it cannot recover from; failures of its own class start it
// again after a recovery. A block of level k is a sequence of n_k blocks of level k - 1, which is a geometric sum, so
// that a pattern of any length costs a few operations per level. This is Moody, Bronevetsky, Mohror, de Supinski,
// "Design, modeling, and evaluation of a scalable multi-level checkpointing system" (SC 2010), in closed form for
// nested patterns. With one level it is exactly one_level.hpp.
//
// Work in the background: a checkpoint blocks for `blocked_s`, and holds at its level `behind_s` later. Until then
// the program has lost the share `slowed` of its speed, and a failure goes back to the checkpoint before. From
// the moment that a checkpoint holds until the next one does, a failure costs the recovery, the work that
// had been done while it became durable, (1 - slowed) behind_s, and then the same stretch again. That is exact for
// one level. With several, that work is taken for a number of blocks of the shallower levels, which need not be whole.
#pragma once

#include <cstddef>
#include <vector>

namespace diapause::model {

inline constexpr std::size_t kMostLevels = 6;

// Of all nodes of the job together.
struct Powers {
  double compute_w = 1;
  double checkpoint_w = 1;  // while the program stands still for one
  double restart_w = 1;
  double idle_w = 1;    // while nothing can be done after a failure
  double behind_w = 0;  // more than compute_w, while a checkpoint is made durable in the background
};

// Seconds by what they are spent on.
struct Times {
  double computing_s = 0;      // useful, and what is lost and done again
  double slowed_s = 0;         // what the work in the background takes away from the program
  double checkpointing_s = 0;  // the program stands still
  double restarting_s = 0;
  double down_s = 0;
  double behind_s = 0;  // beside the program: not a part of the wall time

  double wall_s() const { return computing_s + slowed_s + checkpointing_s + restarting_s + down_s; }
  double joules(const Powers& powers) const;
  Times& operator+=(const Times& more);
  friend Times operator*(double factor, Times times);
};

// One level of checkpoints and the failures that it is for. Seconds; none is negative.
struct Level {
  int number = 1;             // as users know it
  double blocked_s = 0;       // of the program, by a checkpoint of this level with all that it includes
  double behind_s = 0;        // until it holds at this level, after that
  double slowed = 0;          // share of its speed that the program loses meanwhile: 0 to below 1
  double restart_s = 0;       // from a checkpoint of this level
  double downtime_s = 0;      // after a failure of this class, before a restart can begin
  double failures_per_s = 0;  // of this class, of all nodes of the job together
};

// `every[i]`: of how many checkpoints of levels[i - 1] or deeper one is of levels[i] or deeper. every[0] is 1. Not
// necessarily whole: the cost is a smooth function of them.
struct Pattern {
  double work_s = 0;  // between two checkpoints
  std::vector<double> every;

  double work_of_all_s() const;                   // in the pattern
  double period_work_s(std::size_t level) const;  // useful work between two checkpoints of levels[level] or deeper
};

struct Cost {
  double work_s = 0;  // useful work in the pattern
  Times times;        // for it, in expectation

  double rework_s() const { return times.computing_s - work_s; }
  double wall_per_work() const { return times.wall_s() / work_s; }
  double watts_per_work(const Powers& powers) const { return times.joules(powers) / work_s; }
};

// `levels` from the shallowest to the deepest, 1 to kMostLevels; the deepest one recovers from everything. The number
// of `pattern.every` is that of the levels. Infinite where failures come so fast that nothing is ever done.
Cost cost_of(const std::vector<Level>& levels, const Pattern& pattern);

// Levels that a job has, of those in `levels`: a failure of a class whose level is not there goes to the next deeper
// one that is. `present` has a value for each level; rates of classes deeper than the deepest present level are left
// out, as no checkpoint stands against them.
std::vector<Level> only_present(const std::vector<Level>& levels, const std::vector<bool>& present);

}  // namespace diapause::model
