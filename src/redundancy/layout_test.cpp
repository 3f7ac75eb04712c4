#include "redundancy/layout.hpp"

#include <gmock/gmock.h>

#include <set>

namespace diapause::redundancy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class Check>
void for_every_layout(Check check) {
  for (std::uint32_t n = 2; n <= 12; ++n) {
    for (std::uint32_t m = 1; m < n; ++m) {
      SCOPED_TRACE("n " + std::to_string(n) + " m " + std::to_string(m));
      const auto layout = GroupLayout::create(n, m);
      ASSERT_TRUE(layout.has_value());
      check(*layout);
    }
  }
}

TEST(GroupLayout, EachRowHasParityOnMDifferentMembers) {
  for_every_layout([](const GroupLayout& layout) {
    for (std::uint32_t row = 0; row < layout.n(); ++row) {
      std::set<std::uint32_t> members;
      for (std::uint32_t position = layout.k(); position < layout.n(); ++position) {
        members.insert(layout.member_at(position, row));
        EXPECT_EQ(layout.member_at(position, row), (row + position - layout.k()) % layout.n());
      }
      EXPECT_EQ(members.size(), layout.m());
      for (const std::uint32_t member : members) EXPECT_TRUE(layout.holds_parity(member, row));
    }
  });
}

TEST(GroupLayout, PositionAndMemberAreInversesAndDataMembersRise) {
  for_every_layout([](const GroupLayout& layout) {
    for (std::uint32_t row = 0; row < layout.n(); ++row) {
      std::uint32_t data = 0;
      for (std::uint32_t member = 0; member < layout.n(); ++member) {
        EXPECT_EQ(layout.member_at(layout.position(member, row), row), member);
        EXPECT_EQ(layout.holds_parity(member, row), layout.position(member, row) >= layout.k());
        if (!layout.holds_parity(member, row)) {
          EXPECT_EQ(layout.position(member, row), data++);
        }
      }
      EXPECT_EQ(data, layout.k());
    }
  });
}

TEST(GroupLayout, EveryMemberHoldsEachOfItsChunksOnceInRowOrder) {
  for_every_layout([](const GroupLayout& layout) {
    for (std::uint32_t member = 0; member < layout.n(); ++member) {
      std::uint32_t data = 0, parity = 0;
      for (std::uint32_t row = 0; row < layout.n(); ++row) {
        std::uint32_t& next = layout.holds_parity(member, row) ? parity : data;
        EXPECT_EQ(layout.chunk_index(member, row), next++);
      }
      EXPECT_EQ(data, layout.k());
      EXPECT_EQ(parity, layout.m());
    }
  });
}

TEST(GroupLayout, MatchesThePictureInTheHeader) {
  const auto layout = GroupLayout::create(4, 1);
  EXPECT_TRUE(layout->holds_parity(2, 2));
  EXPECT_EQ(layout->position(3, 0), 2U);
  EXPECT_EQ(layout->position(3, 3), 3U);
  EXPECT_EQ(layout->chunk_index(3, 2), 2U);
  EXPECT_EQ(layout->chunk_index(0, 1), 0U);
}

TEST(GroupLayout, ChunksArePagesAndCoverTheLargestImageAndNoMore) {
  constexpr std::uint64_t kHuge = (1ULL << 63) - 1;
  for_every_layout([](const GroupLayout& layout) {
    for (const std::uint64_t size :
         std::initializer_list<std::uint64_t>{0, 1, 4095, 4096, 4097, 12288, 1000003, kHuge}) {
      const std::uint64_t chunk = layout.chunk_bytes(size);
      EXPECT_EQ(chunk % kPageBytes, 0U);
      EXPECT_GE(chunk * layout.k(), size);
      EXPECT_TRUE(chunk == 0 ? size == 0 : (chunk - kPageBytes) * layout.k() < size) << size;
    }
  });
}

TEST(GroupLayout, RefusesGroupsThatCannotBe) {
  for (const auto& [n, m] : {std::pair{0U, 0U}, std::pair{4U, 0U}, std::pair{4U, 4U},
                             std::pair{2U, 3U}, std::pair{256U, 1U}}) {
    EXPECT_EQ(GroupLayout::create(n, m).error().code, Code::argument);
  }
  EXPECT_TRUE(GroupLayout::create(255, 254).has_value());
}

TEST(Partners, AreOnTheNextNodeInTheRing) {
  EXPECT_THAT(*partners(std::vector{0U, 0U, 1U, 1U, 2U, 2U}), ElementsAre(2, 3, 4, 5, 0, 1));
  EXPECT_THAT(*partners(std::vector{0U, 1U, 0U, 1U}), ElementsAre(1, 0, 3, 2));
}

TEST(Partners, ShareTheRanksOfASmallerNode) {
  EXPECT_THAT(*partners(std::vector{0U, 0U, 0U, 1U}), ElementsAre(3, 3, 3, 0));
}

TEST(Partners, NeedTwoNodesNumberedWithoutGaps) {
  EXPECT_THAT(partners(std::vector{0U, 0U}).error().message,
              HasSubstr("at least 2 nodes; there is 1"));
  EXPECT_EQ(partners(std::vector{0U, 2U, 2U}).error().code, Code::argument);
  EXPECT_EQ(partners(std::vector{0U, 0xffffffffU}).error().code, Code::argument);
  EXPECT_EQ(partners({}).error().code, Code::argument);
}

std::vector<std::uint32_t> one_rank_per_node(std::uint32_t nodes) {
  std::vector<std::uint32_t> node_of_rank(nodes);
  for (std::uint32_t node = 0; node < nodes; ++node) node_of_rank[node] = node;
  return node_of_rank;
}

std::vector<std::size_t> group_sizes(std::uint32_t nodes, std::uint32_t group_nodes) {
  const auto made = groups(one_rank_per_node(nodes), group_nodes, 1);
  std::vector<std::size_t> sizes;
  for (const format::Group& group : made.value()) sizes.push_back(group.members.size());
  return sizes;
}

TEST(Groups, SpreadARemainderOfNodesOverTheSets) {
  EXPECT_THAT(group_sizes(8, 4), ElementsAre(4, 4));
  EXPECT_THAT(group_sizes(7, 4), ElementsAre(7));
  EXPECT_THAT(group_sizes(9, 4), ElementsAre(5, 4));
  EXPECT_THAT(group_sizes(11, 3), ElementsAre(4, 4, 3));
  EXPECT_THAT(group_sizes(3, 16), ElementsAre(3));
}

TEST(Groups, TakeOneRankOfEachNodeAndZerosWhereANodeHasFewer) {
  const auto made = groups(std::vector{0U, 0U, 1U, 2U, 2U}, 3, 1);
  ASSERT_EQ(made->size(), 2U);
  EXPECT_THAT(made->at(0).members, ElementsAre(0, 2, 3));
  EXPECT_THAT(made->at(1).members, ElementsAre(1, format::kNoRank, 4));
  EXPECT_THAT(made->at(1).nodes, ElementsAre(0, 1, 2));
}

TEST(Groups, HoldEveryRankExactlyOnceWhateverTheNodesAre) {
  const std::vector node_of_rank{4U, 1U, 0U, 2U, 3U, 3U, 1U, 0U, 1U, 4U, 2U};
  std::multiset<std::uint32_t> ranks;
  const auto made = groups(node_of_rank, 2, 1);
  ASSERT_TRUE(made.has_value());
  for (const format::Group& group : *made) {
    for (std::size_t i = 0; i < group.members.size(); ++i) {
      if (group.members[i] == format::kNoRank) continue;
      ranks.insert(group.members[i]);
      EXPECT_EQ(group.nodes[i], node_of_rank[group.members[i]]);
    }
  }
  EXPECT_THAT(ranks, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
}

TEST(Groups, RefuseASetThatDoesNotOutnumberItsParityAndNameBothNumbers) {
  const auto refused = groups(one_rank_per_node(2), 4, 2);
  EXPECT_EQ(refused.error().code, Code::argument);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("group of 2 nodes"), HasSubstr("parity 2")));
  EXPECT_TRUE(groups(one_rank_per_node(3), 4, 2).has_value());
}

TEST(Groups, RefuseSetsOfMoreThan255Nodes) {
  EXPECT_TRUE(groups(one_rank_per_node(255), 255, 1).has_value());
  EXPECT_EQ(groups(one_rank_per_node(256), 256, 1).error().code, Code::argument);
  EXPECT_EQ(groups(one_rank_per_node(511), 255, 1).error().code, Code::argument);
  EXPECT_EQ(groups({}, 4, 1).error().code, Code::argument);
  EXPECT_EQ(groups(one_rank_per_node(4), 4, 0).error().code, Code::argument);
}

TEST(Groups, ASetIsToldForEachNodeAlone) {
  for (const std::uint32_t nodes : {1U, 3U, 4U, 5U, 7U, 8U, 11U, 254U}) {
    for (const std::uint32_t group_nodes : {0U, 1U, 3U, 4U, 300U}) {
      std::uint32_t end = 0;
      for (std::uint32_t node = 0; node < nodes; ++node) {
        const NodeSet set = node_set_of(node, nodes, group_nodes);
        EXPECT_LE(set.first, node);
        EXPECT_LT(node, set.first + set.count);
        // No gaps, and the same set for all its nodes.
        EXPECT_TRUE(set.first == end || set.first + set.count == end);
        end = set.first + set.count;
      }
      EXPECT_EQ(end, nodes);
    }
  }
}

TEST(GroupLayout, FindsOtherChunksOfARowUntilThereAreEnough) {
  const GroupLayout layout = *GroupLayout::create(4, 1);
  std::vector<std::uint32_t> asked;
  // Row 1 has its parity on member 1, and the data of members 0, 2 and 3.
  const auto all_but_the_third = [&](const Chunk& chunk) -> std::optional<Chunk> {
    asked.push_back(chunk.member);
    return chunk.member == 3 ? std::nullopt : std::optional(chunk);
  };
  const std::vector<Chunk> found = layout.find_chunks(0, 1, all_but_the_third);
  EXPECT_EQ(asked, (std::vector<std::uint32_t>{2, 3, 1}));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].index, layout.chunk_index(2, 1));
  EXPECT_FALSE(found[0].is_parity);
  EXPECT_TRUE(found[1].is_parity);
  EXPECT_EQ(found[1].position, 3U);

  asked.clear();
  const auto any = [&](const Chunk& chunk) { return std::optional(chunk.member); };
  EXPECT_EQ(layout.find_chunks(1, 1, any), (std::vector<std::uint32_t>{0, 2, 3}));
}

}  // namespace
}  // namespace diapause::redundancy
