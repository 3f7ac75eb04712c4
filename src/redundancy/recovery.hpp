// Determines from what is left of a version where each rank's image can come from. The function is
// pure: the engine executes the plan at a restart, and `diapause verify` asks for plans after
// hypothetical losses of nodes.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "format/manifest.hpp"

namespace diapause::redundancy {

// The files of one version in one place (a node's tier, or the global tier), as far as they are
// known to be intact.
struct Holdings {
  std::set<std::uint32_t> images;  // by rank: own images and copies alike, wherever the rank ran
  std::set<std::pair<std::uint32_t, std::uint32_t>> parities;  // (group, member index)
};

enum class SourceKind {
  own_node,   // an image in the tier of the node where the rank runs now
  peer_node,  // an image in the tier of `node`
  rebuild,    // decoded from the group's surviving images and parities
  global,     // the global tier
  none        // lost
};
const char* source_kind_name(
    SourceKind kind);  // "own node", "peer node", "parity", "global", "none"

struct Source {
  SourceKind kind = SourceKind::none;
  std::uint32_t node = 0;  // index into the given nodes, for peer_node
};

struct RecoveryPlan {
  std::vector<Source> sources;                 // one per rank
  std::vector<std::uint32_t> missing() const;  // the ranks with SourceKind::none
};

// nodes[i] are the holdings of the i-th present node, and node_of_rank_now[r] is the index of rank
// r's node. The order of preference is own node, peer (lowest index), rebuild, global. A rebuild is
// possible if and only if at least k chunks are available in every row in which the rank holds
// data. An image counts for its member's chunks; a member without a rank is all zeros and always
// available. Only images of ranks whose source in this plan is own_node or peer_node count, and
// those whose source is `global` and which are not compressed, if the nodes alone do not suffice.
// So a rebuild never waits for another rebuild. A rank whose image is in the global tier is read
// from there rather than rebuilt with the help of other global images.
RecoveryPlan plan_recovery(const format::Manifest& manifest, std::span<const Holdings> nodes,
                           const Holdings& global, std::span<const std::uint32_t> node_of_rank_now);

}  // namespace diapause::redundancy
