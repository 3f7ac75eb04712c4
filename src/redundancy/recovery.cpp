#include "redundancy/recovery.hpp"

#include <algorithm>

#include "redundancy/layout.hpp"

namespace diapause::redundancy {
namespace {

// The chunks that a decoder can use.
struct Survivors {
  std::set<std::uint32_t> images;
  std::set<std::pair<std::uint32_t, std::uint32_t>> parities;
};

// Returns the members of the group whose image is missing and can be decoded.
std::set<std::uint32_t> rebuildable_ranks(const format::Group& group, std::uint32_t group_index,
                                          const Survivors& survivors) {
  const auto layout =
      GroupLayout::create(static_cast<std::uint32_t>(group.members.size()), group.parity);
  if (!layout) return {};  // level 3 was not reached, so there is no parity
  const std::uint32_t n = layout->n();
  std::vector<char> has_image(n), has_parity(n), decodable(n, 1);
  for (std::uint32_t member = 0; member < n; ++member) {
    const std::uint32_t rank = group.members[member];
    has_image[member] = rank == format::kNoRank || survivors.images.contains(rank);
    has_parity[member] = survivors.parities.contains({group_index, member});
  }
  for (std::uint32_t row = 0; row < n; ++row) {
    std::uint32_t available = 0;
    for (std::uint32_t member = 0; member < n; ++member) {
      if (layout->holds_parity(member, row) ? has_parity[member] : has_image[member]) ++available;
    }
    if (available >= layout->k()) continue;
    for (std::uint32_t member = 0; member < n; ++member) {
      if (!layout->holds_parity(member, row)) decodable[member] = 0;
    }
  }
  std::set<std::uint32_t> ranks;
  for (std::uint32_t member = 0; member < n; ++member) {
    if (!has_image[member] && decodable[member]) ranks.insert(group.members[member]);
  }
  return ranks;
}

constexpr std::uint32_t kNowhere = UINT32_MAX;

// Returns for each rank the lowest node that has its image. To look through the nodes for each rank
// would take longer with every rank and every node.
std::vector<std::uint32_t> lowest_holders(std::span<const Holdings> nodes, std::size_t rank_count) {
  std::vector<std::uint32_t> holders(rank_count, kNowhere);
  for (std::uint32_t node = 0; node < nodes.size(); ++node) {
    for (const std::uint32_t rank : nodes[node].images) {
      if (rank < rank_count) holders[rank] = std::min(holders[rank], node);
    }
  }
  return holders;
}

}  // namespace

const char* source_kind_name(SourceKind kind) {
  switch (kind) {
    case SourceKind::own_node:
      return "own node";
    case SourceKind::peer_node:
      return "peer node";
    case SourceKind::rebuild:
      return "parity";
    case SourceKind::global:
      return "global";
    case SourceKind::none:
      break;
  }
  return "none";
}

std::vector<std::uint32_t> RecoveryPlan::missing() const {
  std::vector<std::uint32_t> ranks;
  for (std::size_t rank = 0; rank < sources.size(); ++rank) {
    if (sources[rank].kind == SourceKind::none) ranks.push_back(static_cast<std::uint32_t>(rank));
  }
  return ranks;
}

RecoveryPlan plan_recovery(const format::Manifest& manifest, std::span<const Holdings> nodes,
                           const Holdings& global,
                           std::span<const std::uint32_t> node_of_rank_now) {
  RecoveryPlan plan;
  plan.sources.resize(manifest.ranks.size());
  Survivors survivors{{}, global.parities};
  for (const Holdings& node : nodes)
    survivors.parities.insert(node.parities.begin(), node.parities.end());
  const auto rebuild_what_can_be = [&] {
    for (std::uint32_t group = 0; group < manifest.groups.size(); ++group) {
      for (const std::uint32_t rank : rebuildable_ranks(manifest.groups[group], group, survivors)) {
        if (rank >= plan.sources.size()) continue;
        Source& source = plan.sources[rank];
        if (source.kind == SourceKind::none) source.kind = SourceKind::rebuild;
      }
    }
  };
  const std::vector<std::uint32_t> holders = lowest_holders(nodes, plan.sources.size());
  for (std::uint32_t rank = 0; rank < plan.sources.size(); ++rank) {
    const bool runs = rank < node_of_rank_now.size() && node_of_rank_now[rank] < nodes.size();
    if (runs && nodes[node_of_rank_now[rank]].images.contains(rank)) {
      plan.sources[rank].kind = SourceKind::own_node;
    } else if (holders[rank] != kNowhere) {
      plan.sources[rank] = {SourceKind::peer_node, holders[rank]};
    }
    if (plan.sources[rank].kind != SourceKind::none)
      survivors.images.insert(survivors.images.end(), rank);
  }
  rebuild_what_can_be();
  // Only images that cannot be had from the nodes come from the global tier, and only those help to
  // decode others, so that two ranks never wait for each other's decoded image.
  for (std::uint32_t rank = 0; rank < plan.sources.size(); ++rank) {
    if (plan.sources[rank].kind == SourceKind::none && global.images.contains(rank)) {
      plan.sources[rank].kind = SourceKind::global;
      // Parities were computed from the images on the nodes, byte by byte.
      if (!manifest.ranks[rank].is_encoded()) survivors.images.insert(rank);
    }
  }
  rebuild_what_can_be();
  return plan;
}

}  // namespace diapause::redundancy
