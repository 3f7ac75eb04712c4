// What a checkpoint of each level takes, and a node draws, where nobody has measured it: bytes over rates.
#pragma once

#include <cstdint>

#include "model/levels.hpp"

namespace diapause::model {

struct JobSize {
  double bytes = 0;  // protected, of all ranks
  std::uint32_t nodes = 1;
  std::uint32_t group_nodes = 4, parity = 1;  // of level 3
};

// MB/s. The values that stand here are assumptions.
struct Rates {
  double memory_mb_s = 8000;    // of a node: a copy by one core
  double network_mb_s = 10000;  // of a node: one adapter of 100 Gbit/s
  double storage_mb_s = 500;    // of all nodes together
};
// 500 MB/s a node, at most 100 GB/s.
double assumed_storage_mb_s(std::uint32_t nodes);

// The share of its speed that the program is taken to lose to work behind a checkpoint.
inline constexpr double kAssumedSlowed = 0.05;

struct LevelTimes {
  double blocked_s = 0, behind_s = 0, restart_s = 0;
};

// A copy blocks the program. Behind it, a node sends its data to a partner (level 2), or all that it and its share of
// the parity are (level 3), or everything goes to the storage (4 and deeper). A restart moves the same the other way,
// and takes in a whole group at level 3.
LevelTimes times_at_rates(int level, const JobSize& job, const Rates& rates);

// Of a node that draws so much when idle and with all processors busy: a checkpoint or restart draws idle and a quarter
// of what computing adds, work behind a checkpoint a twentieth of it more than computing.
Powers assumed_powers(double nodes, double idle_w, double busy_w);

}  // namespace diapause::model
