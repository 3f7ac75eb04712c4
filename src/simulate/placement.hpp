// What is left of a checkpoint when nodes are lost, as src/redundancy places copies and parity.
#pragma once

#include <cstdint>
#include <set>

namespace diapause::simulate {

struct Placement {
  std::uint32_t nodes = 1;
  std::uint32_t group_nodes = 4;  // level 3
  std::uint32_t parity = 1;       // of them may be lost
};

// Nodes whose memory and disks are gone, and that were not healed since.
struct Losses {
  std::set<std::uint32_t> nodes;
  bool all_nodes = false;
  bool global = false;  // the global tier, too

  bool none() const { return nodes.empty() && !all_nodes && !global; }
};

// Whether a checkpoint of that level can be had after those losses. Level 1 survives no lost node, level 2 any whose
// partner is there, level 3 as many as there is parity in each group, level 4 everything but the global tier, and level
// 5 that too.
bool survives(const Placement& placement, int level, const Losses& losses);

}  // namespace diapause::simulate
