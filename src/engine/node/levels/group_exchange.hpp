// The ranks of a level-3 group, and the rank that acts for a member without a rank.
#pragma once

#include <cstdint>

#include "engine/job/topology.hpp"
#include "format/manifest.hpp"

namespace diapause::engine {

// Returns the rank that does a member's work: the member itself, or, on a node with fewer ranks
// than others, the node's first rank.
inline std::uint32_t host_of(const Topology& topology, const format::Group& group,
                             std::uint32_t member) {
  const std::uint32_t rank = group.members[member];
  return rank != format::kNoRank ? rank : topology.leaders[group.nodes[member]];
}

}  // namespace diapause::engine
