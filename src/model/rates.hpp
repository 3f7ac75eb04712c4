// Estimates of the duration of checkpoints and the power of nodes where nobody has measured them:
// bytes divided by rates.
#pragma once

#include <cstdint>

#include "model/levels.hpp"

namespace diapause::model {

struct JobSize {
  double bytes = 0;  // protected bytes of all ranks
  std::uint32_t nodes = 1;
  std::uint32_t group_nodes = 4, parity = 1;  // the groups of level 3
};

// Rates in MB/s. The default values are assumptions.
struct Rates {
  double memory_mb_s = 8000;    // per node: a copy by one core
  double network_mb_s = 10000;  // for each node: one adapter of 100 Gbit/s
  double storage_mb_s = 500;    // for all nodes together
};
// Returns 500 MB/s per node, but at most 100 GB/s.
double assumed_storage_mb_s(std::uint32_t nodes);

// The assumed share of its speed that the program loses to work behind a checkpoint.
inline constexpr double kAssumedSlowed = 0.05;

struct LevelTimes {
  double blocked_s = 0, behind_s = 0, restart_s = 0;
};

// Returns the times of a level. A copy blocks the program. Behind it, a node sends its data to a
// partner (level 2), exchanges its data and its share of the parity (level 3), or all data go to
// the storage (level 4 and deeper). A restart moves the same data back, and at level 3 those of a
// whole group.
LevelTimes times_at_rates(int level, const JobSize& job, const Rates& rates);

// Returns the powers of nodes that draw `idle_w` when idle and `busy_w` with all processors busy. A
// checkpoint or restart draws the idle power and a quarter of what computing adds to it; work
// behind a checkpoint draws a twentieth of that in addition to computing.
Powers assumed_powers(double nodes, double idle_w, double busy_w);

}  // namespace diapause::model
