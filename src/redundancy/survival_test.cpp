#include "redundancy/survival.hpp"

#include <gmock/gmock.h>

namespace diapause::redundancy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

format::Manifest manifest_of_four_nodes(std::uint32_t levels) {
  format::Manifest manifest;
  manifest.levels = levels;
  const std::vector<std::uint32_t> node_of_rank = {0, 1, 2, 3};
  for (const std::uint32_t node : node_of_rank) {
    manifest.node_names.push_back("n" + std::to_string(node));
    manifest.ranks.push_back({{}, 100, node, format::kNoRank});
  }
  return manifest;
}

// Returns evidence of rank r's image on node r, and with `copies` also on the next node.
std::vector<Evidence> images(const format::Manifest& manifest, bool copies) {
  std::vector<Evidence> evidence;
  for (std::uint32_t node = 0; node < 4; ++node) {
    evidence.push_back({manifest.node_names[node], &manifest, {{node}, {}}});
    if (copies) evidence.back().holdings.images.insert((node + 3) % 4);
  }
  return evidence;
}

TEST(Assessment, FindsEveryNodeFatalWhereNothingIsStoredTwice) {
  const format::Manifest manifest = manifest_of_four_nodes(1u << 1);
  const Assessment found = assess(Remains(images(manifest, false)));
  EXPECT_TRUE(found.restorable);
  EXPECT_THAT(found.fatal_nodes, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(found.fatal_pairs, 6);
  EXPECT_FALSE(found.survives_all_nodes);
}

TEST(Assessment, FindsThePairsThatHoldBothCopies) {
  const format::Manifest manifest = manifest_of_four_nodes(1u << 2);
  const Assessment found = assess(Remains(images(manifest, true)));
  EXPECT_THAT(found.fatal_nodes, IsEmpty());
  EXPECT_THAT(found.fatal_pair_examples,
              ElementsAre(Loss{0, 1}, Loss{0, 3}, Loss{1, 2}, Loss{2, 3}));
  EXPECT_EQ(found.pairs, 6);
}

TEST(Assessment, CountsOnParityOfAGroup) {
  format::Manifest manifest = manifest_of_four_nodes(1u << 3);
  manifest.groups = {{{0, 1, 2, 3}, {0, 1, 2, 3}, 2, 4096, std::vector<format::ImageRecord>(4)}};
  std::vector<Evidence> evidence = images(manifest, false);
  for (std::uint32_t node = 0; node < 4; ++node) evidence[node].holdings.parities.insert({0, node});
  const Assessment found = assess(Remains(evidence));
  EXPECT_THAT(found.fatal_nodes, IsEmpty());
  EXPECT_EQ(found.fatal_pairs, 0);
  EXPECT_FALSE(found.survives_all_nodes);
}

TEST(Assessment, LosesAVersionWithItsLastManifest) {
  const format::Manifest manifest = manifest_of_four_nodes(1u << 2);
  std::vector<Evidence> evidence = images(manifest, true);
  for (std::uint32_t node = 1; node < 4; ++node) evidence[node].manifest = nullptr;
  const Assessment found = assess(Remains(evidence));
  EXPECT_TRUE(found.restorable);
  EXPECT_THAT(found.fatal_nodes, ElementsAre(0));
}

TEST(Assessment, SurvivesTheLossOfAllNodesWithTheGlobalTierOnly) {
  const format::Manifest manifest = manifest_of_four_nodes(1u << 4);
  const Assessment found = assess(Remains({{"", &manifest, {{0, 1, 2, 3}, {}}}}));
  EXPECT_TRUE(found.survives_all_nodes);
  EXPECT_THAT(found.fatal_nodes, IsEmpty());
}

TEST(Assessment, NamesTheRanksThatAreLost) {
  const format::Manifest manifest = manifest_of_four_nodes(1u << 1);
  std::vector<Evidence> evidence = images(manifest, false);
  evidence[1].holdings.images.clear();
  evidence.erase(evidence.begin() + 3);
  const Remains remains(std::move(evidence));
  EXPECT_THAT(assess(remains).missing, ElementsAre(1, 3));
  EXPECT_THAT(remains.reached(), ElementsAre(0, 1, 2));
}

TEST(Assessment, SaysNothingIsRestorableWithoutAManifest) {
  const Assessment found = assess(Remains({{"n0", nullptr, {{0}, {}}}}));
  EXPECT_FALSE(found.restorable);
  EXPECT_THAT(found.sources, IsEmpty());
  EXPECT_THAT(found.fatal_nodes, SizeIs(1));
}

TEST(Assessment, DoesNotTryTooManyPairs) {
  format::Manifest manifest = manifest_of_four_nodes(1u << 4);
  for (std::size_t node = 4; node <= kMostNodesForPairs; ++node)
    manifest.node_names.push_back("n" + std::to_string(node));
  const Assessment found = assess(Remains({{"", &manifest, {{0, 1, 2, 3}, {}}}}));
  EXPECT_FALSE(found.pairs_tried);
}

}  // namespace
}  // namespace diapause::redundancy
