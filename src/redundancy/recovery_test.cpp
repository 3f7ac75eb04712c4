#include "redundancy/recovery.hpp"

#include <gmock/gmock.h>

#include <bit>

#include "redundancy/layout.hpp"

namespace diapause::redundancy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A version as a healthy job leaves it at one level, and what its nodes hold.
struct Stored {
  format::Manifest manifest;
  std::vector<std::uint32_t> node_of_rank;
  std::vector<Holdings> nodes;
  Holdings global;

  RecoveryPlan plan() const { return plan_recovery(manifest, nodes, global, node_of_rank); }
  void lose(std::uint32_t node) { nodes[node] = {}; }
  SourceKind kind(std::uint32_t rank) const { return plan().sources[rank].kind; }
};

void add_parity(Stored& stored, std::uint32_t group_nodes, std::uint32_t parity) {
  stored.manifest.groups = *groups(stored.node_of_rank, group_nodes, parity);
  for (std::uint32_t g = 0; g < stored.manifest.groups.size(); ++g) {
    format::Group& group = stored.manifest.groups[g];
    group.parity = parity;
    for (std::uint32_t member = 0; member < group.nodes.size(); ++member) {
      stored.nodes[group.nodes[member]].parities.insert({g, member});
    }
  }
}

void add_partner_copies(Stored& stored) {
  const auto partner = *partners(stored.node_of_rank);
  for (std::uint32_t rank = 0; rank < partner.size(); ++rank) {
    stored.manifest.ranks[rank].partner = partner[rank];
    stored.nodes[stored.node_of_rank[partner[rank]]].images.insert(rank);
  }
}

Stored stored_at_level_1(std::vector<std::uint32_t> node_of_rank, std::uint32_t nodes) {
  Stored stored;
  stored.manifest.ranks.resize(node_of_rank.size());
  stored.nodes.resize(nodes);
  for (std::uint32_t rank = 0; rank < node_of_rank.size(); ++rank)
    stored.nodes[node_of_rank[rank]].images.insert(rank);
  stored.node_of_rank = std::move(node_of_rank);
  return stored;
}

Stored four_nodes_of_two(int level, std::uint32_t parity = 1) {
  Stored stored = stored_at_level_1({0, 0, 1, 1, 2, 2, 3, 3}, 4);
  if (level == 2) add_partner_copies(stored);
  if (level == 3) add_parity(stored, 4, parity);
  if (level == 4) {
    for (std::uint32_t rank = 0; rank < 8; ++rank) stored.global.images.insert(rank);
  }
  return stored;
}

// States the promise of the levels independently, for four nodes in a ring.
bool survives(int level, std::uint32_t parity, std::uint32_t lost) {
  const bool neighbours = (lost & (lost >> 1 | (lost & 1U) << 3)) != 0;
  if (level == 1) return lost == 0;
  if (level == 2) return !neighbours;
  if (level == 3) return std::popcount(lost) <= static_cast<int>(parity);
  return true;
}

void expect_promise(int level, std::uint32_t parity) {
  for (std::uint32_t lost = 0; lost < 16; ++lost) {
    Stored stored = four_nodes_of_two(level, parity);
    for (std::uint32_t node = 0; node < 4; ++node) {
      if (lost >> node & 1U) stored.lose(node);
    }
    EXPECT_EQ(stored.plan().missing().empty(), survives(level, parity, lost))
        << "level " << level << " parity " << parity << " lost " << lost;
    for (std::uint32_t rank = 0; rank < 8; ++rank) {
      const bool node_is_there = (lost >> (rank / 2) & 1U) == 0;
      EXPECT_EQ(stored.kind(rank) == SourceKind::own_node, node_is_there);
    }
  }
}

TEST(Recovery, EachLevelSurvivesExactlyTheNodeLossesItPromises) {
  expect_promise(1, 0);
  expect_promise(2, 0);
  for (std::uint32_t parity = 1; parity <= 3; ++parity) expect_promise(3, parity);
  expect_promise(4, 0);
}

TEST(Recovery, SurvivesAsManyLossesInEachGroupAsThereIsParity) {
  for (std::uint32_t lost = 0; lost < 64; ++lost) {
    Stored stored = stored_at_level_1({0, 1, 2, 3, 4, 5}, 6);
    add_parity(stored, 3, 1);
    for (std::uint32_t node = 0; node < 6; ++node) {
      if (lost >> node & 1U) stored.lose(node);
    }
    const bool survives = std::popcount(lost & 7U) <= 1 && std::popcount(lost >> 3) <= 1;
    EXPECT_EQ(stored.plan().missing().empty(), survives) << lost;
  }
}

TEST(Recovery, NamesTheRanksThatAreLost) {
  Stored stored = four_nodes_of_two(2);
  stored.lose(1);
  stored.lose(2);
  EXPECT_THAT(stored.plan().missing(), ElementsAre(2, 3));
  EXPECT_EQ(stored.kind(4), SourceKind::peer_node);
  EXPECT_EQ(stored.plan().sources[4].node, 3U);
}

TEST(Recovery, FindsTheImagesOfRanksThatMovedToOtherNodes) {
  Stored stored = four_nodes_of_two(1);
  stored.node_of_rank = {3, 3, 2, 2, 1, 1, 0, 0};
  const RecoveryPlan plan = stored.plan();
  EXPECT_THAT(plan.missing(), IsEmpty());
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(plan.sources[rank].kind, SourceKind::peer_node);
    EXPECT_EQ(plan.sources[rank].node, rank / 2);
  }
}

TEST(Recovery, RebuildsARankOfALostNodeWhereverItRunsNow) {
  Stored stored = four_nodes_of_two(3);
  stored.lose(2);
  stored.node_of_rank = {3, 3, 0, 0, 1, 1, 2, 2};
  EXPECT_EQ(stored.kind(4), SourceKind::rebuild);
  EXPECT_EQ(stored.kind(5), SourceKind::rebuild);
  EXPECT_EQ(stored.kind(6), SourceKind::peer_node);
}

TEST(Recovery, PrefersOwnNodeThenLowestPeerThenParityThenGlobal) {
  Stored stored = four_nodes_of_two(3);
  for (std::uint32_t rank = 0; rank < 8; ++rank) stored.global.images.insert(rank);
  stored.nodes[2].images.insert(0);
  stored.nodes[3].images.insert(0);
  EXPECT_EQ(stored.kind(0), SourceKind::own_node);
  stored.nodes[0].images.erase(0);
  EXPECT_EQ(stored.kind(0), SourceKind::peer_node);
  EXPECT_EQ(stored.plan().sources[0].node, 2U);
  stored.nodes[2].images.erase(0);
  stored.nodes[3].images.erase(0);
  EXPECT_EQ(stored.kind(0), SourceKind::rebuild);
  stored.lose(0);
  stored.lose(1);
  EXPECT_EQ(stored.kind(0), SourceKind::global);
}

TEST(Recovery, NeverRebuildsTwoRanksFromEachOther) {
  Stored stored = four_nodes_of_two(3);
  stored.lose(0);
  stored.lose(1);
  stored.global.images = {0, 2};
  EXPECT_EQ(stored.kind(0), SourceKind::global);
  EXPECT_EQ(stored.kind(2), SourceKind::global);
  EXPECT_THAT(stored.plan().missing(), ElementsAre(1, 3));
}

TEST(Recovery, CountsAGlobalImageOfOneMemberTowardsRebuildingAnother) {
  // n = 3, m = 1: member 0 has data in rows 1 and 2 and needs 2 of the 3 chunks in each.
  Stored stored = stored_at_level_1({0, 1, 2}, 3);
  add_parity(stored, 3, 1);
  stored.nodes[0].images.clear();
  stored.nodes[1].images.clear();
  EXPECT_THAT(stored.plan().missing(), ElementsAre(0, 1));
  stored.global.images = {1};
  EXPECT_EQ(stored.kind(1), SourceKind::global);
  EXPECT_EQ(stored.kind(0), SourceKind::rebuild);
}

TEST(Recovery, RebuildsNobodyWithTheHelpOfACompressedImage) {
  Stored stored = stored_at_level_1({0, 1, 2}, 3);
  add_parity(stored, 3, 1);
  stored.nodes[0].images.clear();
  stored.nodes[1].images.clear();
  stored.global.images = {1};
  stored.manifest.ranks[1].encoded.file_bytes = 5000;
  EXPECT_EQ(stored.kind(1), SourceKind::global);
  EXPECT_THAT(stored.plan().missing(), ElementsAre(0));
}

TEST(Recovery, NeedsParityOnlyInRowsWhereTheRankHoldsData) {
  // Member 0's image is lost; its own parity serves a row in which it has no data.
  Stored stored = stored_at_level_1({0, 1, 2, 3}, 4);
  add_parity(stored, 4, 1);
  stored.nodes[0].images.clear();
  stored.nodes[0].parities.clear();
  EXPECT_EQ(stored.kind(0), SourceKind::rebuild);
  stored.nodes[2].parities.clear();
  EXPECT_EQ(stored.kind(0), SourceKind::none);
}

TEST(Recovery, DoesNotMissParityWhileTheImagesAreThere) {
  Stored stored = four_nodes_of_two(3);
  for (Holdings& node : stored.nodes) node.parities.clear();
  EXPECT_THAT(stored.plan().missing(), IsEmpty());
}

TEST(Recovery, ParityOfOneGroupDoesNotServeAnother) {
  Stored stored = four_nodes_of_two(3);
  for (Holdings& node : stored.nodes)
    std::erase_if(node.parities, [](const auto& parity) { return parity.first == 1; });
  stored.lose(0);
  EXPECT_EQ(stored.kind(0), SourceKind::rebuild);
  EXPECT_EQ(stored.kind(1), SourceKind::none);
}

TEST(Recovery, AMemberWithoutARankIsZerosThatCannotBeLost) {
  Stored stored = stored_at_level_1({0, 0, 1, 2, 2}, 3);
  add_parity(stored, 3, 1);
  ASSERT_EQ(stored.manifest.groups[1].members[1], format::kNoRank);
  for (std::uint32_t node = 0; node < 3; ++node) {
    Stored after = stored;
    after.lose(node);
    EXPECT_THAT(after.plan().missing(), IsEmpty()) << node;
  }
}

TEST(Recovery, HasNothingToOfferWhenEveryNodeWasReplaced) {
  Stored stored = four_nodes_of_two(3);
  for (std::uint32_t node = 0; node < 4; ++node) stored.lose(node);
  EXPECT_EQ(stored.plan().missing().size(), 8U);
  stored.global.images = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_THAT(stored.plan().missing(), IsEmpty());
}

TEST(Recovery, PlansForRanksThatRunNowhereYet) {
  Stored stored = four_nodes_of_two(1);
  stored.node_of_rank = {0};
  EXPECT_EQ(stored.kind(0), SourceKind::own_node);
  EXPECT_EQ(stored.kind(7), SourceKind::peer_node);
}

TEST(Recovery, NamesItsSources) {
  EXPECT_STREQ(source_kind_name(SourceKind::own_node), "own node");
  EXPECT_STREQ(source_kind_name(SourceKind::peer_node), "peer node");
  EXPECT_STREQ(source_kind_name(SourceKind::rebuild), "parity");
  EXPECT_STREQ(source_kind_name(SourceKind::global), "global");
  EXPECT_STREQ(source_kind_name(SourceKind::none), "none");
}

}  // namespace
}  // namespace diapause::redundancy
