// The layout of data and parity in a level-3 group. A group has n members on n different nodes. In
// every row, m of them hold parity, and which ones rotates from row to row, so that all nodes have
// the same load:
//
//   n = 4, m = 1      row 0   row 1   row 2   row 3
//   member 0            P      d0      d0      d0        (each d is the member's own next chunk)
//   member 1           d0       P      d1      d1
//   member 2           d1      d1       P      d2
//   member 3           d2      d2      d2       P
//
// Row r has its parity on the members r, r+1, ..., r+m-1 (mod n). A member's image, read as zeros
// behind its end, is divided into k = n-m chunks; chunk c lies in the c-th row in which the member
// holds data. Its parity file consists of the m chunks of the rows in which it holds parity, in row
// order. The additional space is m/(n-m) of the data.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "format/manifest.hpp"

namespace diapause::redundancy {

// A chunk of a codeword.
struct Chunk {
  std::uint32_t position = 0;  // in the codeword
  std::uint32_t member = 0;    // whose image, or parity file, it lies in
  std::uint32_t index = 0;     // which chunk of that
  bool is_parity = false;
};

class GroupLayout {
 public:
  // Requires 1 <= m < n <= 255, and fails with Code::argument otherwise.
  static Result<GroupLayout> create(std::uint32_t n, std::uint32_t m);

  std::uint32_t n() const { return n_; }
  std::uint32_t m() const { return m_; }
  std::uint32_t k() const { return n_ - m_; }

  bool holds_parity(std::uint32_t member, std::uint32_t row) const;
  // Returns the position of the member's chunk in the codeword of that row: data 0..k-1 (members in
  // ascending order), parity k..n-1 (members r, r+1, ... mod n).
  std::uint32_t position(std::uint32_t member, std::uint32_t row) const;
  // Returns the inverse of position().
  std::uint32_t member_at(std::uint32_t position, std::uint32_t row) const;
  // Returns which chunk of the member's image (0..k-1) or of its parity file (0..m-1) lies in that
  // row.
  std::uint32_t chunk_index(std::uint32_t member, std::uint32_t row) const;

  // Calls `find(chunk)` for chunks of that row that are not the member's own, in the order of their
  // positions, until it has returned k values, from which the member's chunk can be computed. It
  // returns nullopt for a chunk that cannot be had; if there are too many of these, fewer than k
  // values are the result.
  template <class Find>
  auto find_chunks(std::uint32_t member, std::uint32_t row, const Find& find) const {
    std::vector<typename std::invoke_result_t<Find, const Chunk&>::value_type> found;
    for (std::uint32_t position = 0; position < n() && found.size() < k(); ++position) {
      const std::uint32_t other = member_at(position, row);
      if (other == member) continue;
      if (auto one = find(Chunk{position, other, chunk_index(other, row), position >= k()}))
        found.push_back(std::move(*one));
    }
    return found;
  }

  // Returns the chunk size for a group whose largest image file has `largest_image_bytes` (below
  // 2^63): the smallest multiple of a page of which k cover it; 0 for 0.
  std::uint64_t chunk_bytes(std::uint64_t largest_image_bytes) const;

 private:
  // Returns how many members from 0 up hold parity of that row.
  std::uint32_t wrapped_parity(std::uint32_t row) const;

  std::uint32_t n_ = 0, m_ = 0;
};

// Where a rank is in the groups of a version.
struct Membership {
  std::uint32_t group = 0;
  std::uint32_t member = 0;
};
// Returns nullopt if the rank is in no group.
std::optional<Membership> membership_of(const format::Manifest& manifest, std::uint32_t rank);

// Returns the node that keeps the level-2 copies of `node`: the next one in the ring. Requires
// node_count >= 2.
std::uint32_t partner_node(std::uint32_t node, std::uint32_t node_count);

// For level 2, entry r of the result is the rank whose node keeps the copy of rank r. It is on
// partner_node(), and has the same local index, modulo the number of ranks there. With fewer than
// two nodes it fails with Code::argument. Here and below, nodes are numbered from 0 without gaps,
// or the result is Code::argument.
Result<std::vector<std::uint32_t>> partners(std::span<const std::uint32_t> node_of_rank);

// A set of nodes whose ranks form groups with one another: `count` consecutive nodes from `first`.
struct NodeSet {
  std::uint32_t first = 0, count = 0;
};

// Returns the set of level 3 that `node` belongs to; see groups(). Requires node < node_count.
// group_nodes = 0 makes one set.
NodeSet node_set_of(std::uint32_t node, std::uint32_t node_count, std::uint32_t group_nodes);

// Level 3: the nodes are divided into consecutive sets of `group_nodes`. A remainder is spread over
// the sets, so that a set may be larger; fewer nodes than asked for form one set. In each set, the
// i-th ranks of all nodes form a group with parity = m; chunk_bytes and parities stay 0 and empty.
// Code::argument, naming both numbers, if a set would have m or fewer nodes or more than 255.
Result<std::vector<format::Group>> groups(std::span<const std::uint32_t> node_of_rank,
                                          std::uint32_t group_nodes, std::uint32_t parity);

}  // namespace diapause::redundancy
