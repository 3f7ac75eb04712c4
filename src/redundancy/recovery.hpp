// From what is left of a version: where each rank's image can come from. Pure; the engine executes it at restart and
// `diapause verify` asks it "and if these nodes were lost?".
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "format/manifest.hpp"

namespace diapause::redundancy {

// What one place (a node's tier, or the global tier) holds of one version, as far as is known intact.
struct Holdings {
  std::set<std::uint32_t> images;                              // ranks, wherever they ran: own images and copies alike
  std::set<std::pair<std::uint32_t, std::uint32_t>> parities;  // (group, member index)
};

enum class SourceKind {
  own_node,   // an image in the tier of the node where the rank runs now
  peer_node,  // an image in the tier of `node`
  rebuild,    // decoded from the group's surviving images and parities
  global,     // the global tier
  none        // lost
};
const char* source_kind_name(SourceKind kind);  // "own node", "peer node", "parity", "global", "none"

struct Source {
  SourceKind kind = SourceKind::none;
  std::uint32_t node = 0;  // peer_node: index into the nodes given
};

struct RecoveryPlan {
  std::vector<Source> sources;                 // one per rank
  std::vector<std::uint32_t> missing() const;  // ranks with SourceKind::none
};

// nodes[i]: holdings of the i-th node there is now. node_of_rank_now[r]: its index. Preference: own node, peer (lowest
// index), rebuild, global. A rebuild is possible iff, in every row in which the rank holds data, at least k chunks are
// available (an image counts for its member's chunks; a member without a rank is all zeros and always there). Images
// that count are those of ranks whose source in this plan is own_node, peer_node or, where the nodes alone do not
// suffice, global and not compressed; so a rebuild never waits for another rebuild. A rank whose image is on the global
// tier is taken from there rather than rebuilt with the help of other global images.
RecoveryPlan plan_recovery(const format::Manifest& manifest, std::span<const Holdings> nodes, const Holdings& global,
                           std::span<const std::uint32_t> node_of_rank_now);

}  // namespace diapause::redundancy
