#include "simulate/placement.hpp"

#include <algorithm>

#include "redundancy/layout.hpp"

namespace diapause::simulate {
namespace {

bool every_partner_is_there(const Placement& placement, const std::set<std::uint32_t>& lost) {
  if (placement.nodes < 2) return false;
  return std::ranges::none_of(lost, [&](std::uint32_t node) {
    return lost.contains(redundancy::partner_node(node, placement.nodes));
  });
}

bool every_group_can_be_rebuilt(const Placement& placement, const std::set<std::uint32_t>& lost) {
  for (auto node = lost.begin(); node != lost.end();) {
    const redundancy::NodeSet set =
        redundancy::node_set_of(*node, placement.nodes, placement.group_nodes);
    const auto behind = lost.lower_bound(set.first + set.count);
    if (std::distance(node, behind) > placement.parity) return false;
    node = behind;
  }
  return true;
}

}  // namespace

bool survives(const Placement& placement, int level, const Losses& losses) {
  if (losses.none() || level >= 5) return true;
  if (level >= 4) return !losses.global;
  if (losses.all_nodes) return false;
  if (losses.nodes.empty()) return true;
  if (level == 3) return every_group_can_be_rebuilt(placement, losses.nodes);
  return level == 2 && every_partner_is_there(placement, losses.nodes);
}

}  // namespace diapause::simulate
