#include "redundancy/layout.hpp"

#include <algorithm>
#include <cassert>
#include <string>

namespace diapause::redundancy {
namespace {

constexpr std::uint32_t kMaxMembers = 255;  // chunks of a codeword over GF(2^8)

// Returns the ranks of each node in ascending order. Code::argument if the numbers of nodes have
// gaps.
Result<std::vector<std::vector<std::uint32_t>>> ranks_by_node(
    std::span<const std::uint32_t> node_of_rank) {
  std::vector<std::vector<std::uint32_t>> ranks;
  for (std::size_t rank = 0; rank < node_of_rank.size(); ++rank) {
    const std::uint32_t node = node_of_rank[rank];
    if (node >= node_of_rank.size()) {
      return fail(Code::argument,
                  "rank " + std::to_string(rank) + " is said to run on node " +
                      std::to_string(node) + "; " + std::to_string(node_of_rank.size()) +
                      " ranks run on nodes 0 to " + std::to_string(node_of_rank.size() - 1));
    }
    if (node >= ranks.size()) ranks.resize(node + 1);
    ranks[node].push_back(static_cast<std::uint32_t>(rank));
  }
  for (std::size_t node = 0; node < ranks.size(); ++node) {
    if (ranks[node].empty()) {
      return fail(Code::argument, "node " + std::to_string(node) + " of " +
                                      std::to_string(ranks.size()) +
                                      " has no rank; nodes are numbered without gaps");
    }
  }
  return ranks;
}

// Appends the groups of the nodes [first, first + count).
void append_groups(const std::vector<std::vector<std::uint32_t>>& ranks, std::uint32_t first,
                   std::uint32_t count, std::vector<format::Group>& groups) {
  std::size_t most = 0;
  for (std::uint32_t node = first; node < first + count; ++node)
    most = std::max(most, ranks[node].size());
  for (std::size_t i = 0; i < most; ++i) {
    format::Group group;
    for (std::uint32_t node = first; node < first + count; ++node) {
      group.members.push_back(i < ranks[node].size() ? ranks[node][i] : format::kNoRank);
      group.nodes.push_back(node);
    }
    groups.push_back(std::move(group));
  }
}

}  // namespace

Result<GroupLayout> GroupLayout::create(std::uint32_t n, std::uint32_t m) {
  if (m < 1 || m >= n || n > kMaxMembers) {
    return fail(
        Code::argument,
        "a level-3 group of " + std::to_string(n) + " members with " + std::to_string(m) +
            " parity chunks in each row: at least 1 parity chunk, more members than that and at "
            "most 255 members are possible");
  }
  GroupLayout layout;
  layout.n_ = n;
  layout.m_ = m;
  return layout;
}

bool GroupLayout::holds_parity(std::uint32_t member, std::uint32_t row) const {
  assert(member < n_ && row < n_);
  return (member + n_ - row) % n_ < m_;
}

std::uint32_t GroupLayout::position(std::uint32_t member, std::uint32_t row) const {
  if (holds_parity(member, row)) return k() + (member + n_ - row) % n_;
  return member > row ? member - m_ : member - wrapped_parity(row);
}

std::uint32_t GroupLayout::member_at(std::uint32_t position, std::uint32_t row) const {
  assert(position < n_ && row < n_);
  if (position >= k()) return (row + position - k()) % n_;
  const std::uint32_t member = position + wrapped_parity(row);
  return member < row ? member : member + m_;
}

// The data members of a row are [wrapped_parity, row) and, if nothing wraps, [row + m, n).
std::uint32_t GroupLayout::wrapped_parity(std::uint32_t row) const {
  return row + m_ > n_ ? row + m_ - n_ : 0;
}

std::uint32_t GroupLayout::chunk_index(std::uint32_t member, std::uint32_t row) const {
  // Seen from a member, the rows with parity are x-m+1..x (mod n). There are few rows, so they are
  // counted.
  const bool parity = holds_parity(member, row);
  std::uint32_t index = 0;
  for (std::uint32_t earlier = 0; earlier < row; ++earlier) {
    if (holds_parity(member, earlier) == parity) ++index;
  }
  return index;
}

std::uint64_t GroupLayout::chunk_bytes(std::uint64_t largest_image_bytes) const {
  const std::uint64_t whole = largest_image_bytes / k();
  return round_up(largest_image_bytes % k() == 0 ? whole : whole + 1, kPageBytes);
}

std::optional<Membership> membership_of(const format::Manifest& manifest, std::uint32_t rank) {
  for (std::uint32_t group = 0; group < manifest.groups.size(); ++group) {
    const auto& members = manifest.groups[group].members;
    const auto found = std::ranges::find(members, rank);
    if (found != members.end())
      return Membership{group, static_cast<std::uint32_t>(found - members.begin())};
  }
  return std::nullopt;
}

std::uint32_t partner_node(std::uint32_t node, std::uint32_t node_count) {
  return (node + 1) % node_count;
}

Result<std::vector<std::uint32_t>> partners(std::span<const std::uint32_t> node_of_rank) {
  DIAPAUSE_TRY_ASSIGN(const auto ranks, ranks_by_node(node_of_rank));
  const auto node_count = static_cast<std::uint32_t>(ranks.size());
  if (node_count < 2) {
    return fail(Code::argument,
                "level 2 keeps copies on a partner node and needs at least 2 nodes; there is " +
                    std::to_string(node_count));
  }
  std::vector<std::uint32_t> partner(node_of_rank.size());
  for (std::uint32_t node = 0; node < node_count; ++node) {
    const auto& there = ranks[partner_node(node, node_count)];
    for (std::size_t i = 0; i < ranks[node].size(); ++i)
      partner[ranks[node][i]] = there[i % there.size()];
  }
  return partner;
}

namespace {

std::uint32_t set_count(std::uint32_t node_count, std::uint32_t group_nodes) {
  return group_nodes == 0 ? 1 : std::max(1U, node_count / group_nodes);
}

}  // namespace

NodeSet node_set_of(std::uint32_t node, std::uint32_t node_count, std::uint32_t group_nodes) {
  const std::uint32_t sets = set_count(node_count, group_nodes);
  const std::uint32_t smallest = node_count / sets;
  const std::uint32_t in_larger = node_count % sets * (smallest + 1);
  if (node < in_larger) return {node / (smallest + 1) * (smallest + 1), smallest + 1};
  return {in_larger + (node - in_larger) / smallest * smallest, smallest};
}

Result<std::vector<format::Group>> groups(std::span<const std::uint32_t> node_of_rank,
                                          std::uint32_t group_nodes, std::uint32_t parity) {
  DIAPAUSE_TRY_ASSIGN(const auto ranks, ranks_by_node(node_of_rank));
  const auto node_count = static_cast<std::uint32_t>(ranks.size());
  const std::uint32_t sets = set_count(node_count, group_nodes);
  const std::uint32_t smallest = node_count / sets, larger = node_count % sets;
  if (parity == 0 || smallest <= parity || smallest + (larger > 0 ? 1 : 0) > kMaxMembers) {
    return fail(Code::argument,
                "level 3 over " + std::to_string(node_count) + " nodes in groups of " +
                    std::to_string(group_nodes) + " makes a group of " + std::to_string(smallest) +
                    " nodes, which is not possible with parity " + std::to_string(parity) +
                    ": parity is at least 1, a group has more nodes than that and at most 255");
  }
  std::vector<format::Group> result;
  for (std::uint32_t first = 0; first < node_count;) {
    const NodeSet set = node_set_of(first, node_count, group_nodes);
    append_groups(ranks, set.first, set.count, result);
    first += set.count;
  }
  return result;
}

}  // namespace diapause::redundancy
