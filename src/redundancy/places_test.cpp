#include "redundancy/places.hpp"

#include <gtest/gtest.h>

namespace diapause::redundancy {
namespace {

// Ranks 0 and 1 are on node 0, rank 2 is on node 1.
format::Manifest manifest_of_three_ranks() {
  format::Manifest manifest;
  manifest.node_names = {"node0", "node1"};
  manifest.ranks.resize(3);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    manifest.ranks[rank].image.file_bytes = 100 * (rank + 1);
    manifest.ranks[rank].node = rank / 2;
  }
  return manifest;
}

TEST(BytesOnNode, AreThoseOfItsOwnRanksAtLevelOne) {
  format::Manifest manifest = manifest_of_three_ranks();
  manifest.levels = 1u << 1;
  manifest.ranks[2].partner = 0;  // as a version has it whose copies were given up
  EXPECT_EQ(bytes_on(manifest, 0).images, 300u);
  EXPECT_EQ(bytes_on(manifest, 0).copies, 0u);
  EXPECT_EQ(bytes_on(manifest, 1).images, 300u);
}

TEST(BytesOnNode, CountCopiesWhereThePartnerIs) {
  format::Manifest manifest = manifest_of_three_ranks();
  manifest.levels = 1u << 1 | 1u << 2;
  manifest.ranks[0].partner = manifest.ranks[1].partner = 2;
  manifest.ranks[2].partner = 0;
  EXPECT_EQ(bytes_on(manifest, 0).copies, 300u);
  EXPECT_EQ(bytes_on(manifest, 1).copies, 300u);
  EXPECT_EQ(bytes_on(manifest, 1).parity, 0u);
}

TEST(BytesOnNode, CountParityOfEveryGroupThatHasItThere) {
  format::Manifest manifest = manifest_of_three_ranks();
  manifest.levels = 1u << 1 | 1u << 3;
  const format::ImageRecord parity{40, {}};
  manifest.groups = {{{0, 2}, {0, 1}, 1, 20, {parity, parity}},
                     {{1, format::kNoRank}, {0, 1}, 1, 20, {parity, parity}}};
  EXPECT_EQ(bytes_on(manifest, 0).parity, 80u);
  EXPECT_EQ(bytes_on(manifest, 1).parity, 80u);
  EXPECT_EQ(bytes_on(manifest, 1).images, 300u);
}

}  // namespace
}  // namespace diapause::redundancy
