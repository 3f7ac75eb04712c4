// Tells which checkpoints survive a loss of nodes. Copies and parity are placed as by
// src/redundancy.
#pragma once

#include <cstdint>
#include <set>

namespace diapause::simulate {

struct Placement {
  std::uint32_t nodes = 1;
  std::uint32_t group_nodes = 4;  // level 3
  std::uint32_t parity = 1;       // so many of them may be lost
};

// Nodes whose memory and disks are lost and have not been replaced by a restart since.
struct Losses {
  std::set<std::uint32_t> nodes;
  bool all_nodes = false;
  bool global = false;  // the global tier as well

  bool none() const { return nodes.empty() && !all_nodes && !global; }
};

// Returns whether a checkpoint of that level survives these losses. Level 1 survives no lost node,
// level 2 any whose partner is left, level 3 as many as there is parity in each group, level 4
// everything but a loss of the global tier, and level 5 that as well.
bool survives(const Placement& placement, int level, const Losses& losses);

}  // namespace diapause::simulate
