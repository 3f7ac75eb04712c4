#include "redundancy/places.hpp"

#include <algorithm>

#include "redundancy/layout.hpp"

namespace diapause::redundancy {

std::vector<Holdings> places(const format::Manifest& manifest,
                             std::span<const std::uint32_t> node_of_rank, std::size_t node_count) {
  std::vector<Holdings> nodes(node_count);
  for (std::uint32_t rank = 0; rank < node_of_rank.size(); ++rank) {
    nodes[node_of_rank[rank]].images.insert(rank);
    const std::uint32_t partner = manifest.ranks[rank].partner;
    if (manifest.has_level(2) && partner < node_of_rank.size())
      nodes[node_of_rank[partner]].images.insert(rank);
  }
  for (std::uint32_t g = 0; manifest.has_level(3) && g < manifest.groups.size(); ++g) {
    const format::Group& group = manifest.groups[g];
    for (std::uint32_t member = 0; member < group.members.size(); ++member) {
      const std::uint32_t rank = group.members[member];
      const std::uint32_t node = rank != format::kNoRank ? node_of_rank[rank] : group.nodes[member];
      if (node < node_count) nodes[node].parities.insert({g, member});
    }
  }
  return nodes;
}

bool is_laid_out_alike(const format::Manifest& manifest,
                       std::span<const std::uint32_t> node_of_rank, std::uint32_t group_nodes,
                       std::uint32_t parity) {
  if (manifest.has_level(2)) {
    const auto now = partners(node_of_rank);
    if (!now) return false;
    for (std::uint32_t rank = 0; rank < node_of_rank.size(); ++rank) {
      if (manifest.ranks[rank].partner != (*now)[rank]) return false;
    }
  }
  if (!manifest.has_level(3)) return true;
  const auto now = groups(node_of_rank, group_nodes, parity);
  return now && std::ranges::equal(manifest.groups, *now,
                                   [&](const format::Group& then, const format::Group& group) {
                                     return then.members == group.members &&
                                            then.nodes == group.nodes && then.parity == parity;
                                   });
}

NodeBytes bytes_on(const format::Manifest& manifest, std::uint32_t node) {
  NodeBytes bytes;
  for (const format::RankRecord& rank : manifest.ranks) {
    if (rank.node == node) bytes.images += rank.image.file_bytes;
    const bool has_copy = manifest.has_level(2) && rank.partner < manifest.ranks.size();
    if (has_copy && manifest.ranks[rank.partner].node == node)
      bytes.copies += rank.image.file_bytes;
  }
  for (std::size_t g = 0; manifest.has_level(3) && g < manifest.groups.size(); ++g) {
    const format::Group& group = manifest.groups[g];
    for (std::size_t member = 0; member < group.parities.size(); ++member) {
      if (group.nodes[member] == node) bytes.parity += group.parities[member].file_bytes;
    }
  }
  return bytes;
}

bool is_part_of(const Holdings& some, const Holdings& all) {
  return std::ranges::includes(all.images, some.images) &&
         std::ranges::includes(all.parities, some.parities);
}

}  // namespace diapause::redundancy
