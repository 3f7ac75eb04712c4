#include "cli/npy.hpp"

#include <gmock/gmock.h>

namespace diapause::cli {
namespace {

using format::BlockDim;
using format::ElementType;
using format::Region;
using testing::ElementsAre;
using testing::HasSubstr;

Region piece(std::vector<BlockDim> place) {
  Region region;
  region.name = "u";
  region.type = ElementType::float64;
  region.element_bytes = 8;
  region.count = 1;
  for (const BlockDim& dim : place) region.count *= dim.shape;
  region.place = std::move(place);
  return region;
}

std::string why_not_whole(const std::vector<Region>& regions) {
  std::vector<const Region*> pieces;
  for (const Region& region : regions) pieces.push_back(&region);
  const auto whole = whole_of(pieces);
  return whole ? "it is" : whole.error().message;
}

// The members of BlockDim are shape, global shape, start.
TEST(Npy, PiecesThatFillAnArrayAreAWhole) {
  EXPECT_EQ(why_not_whole({piece({{2, 4, 0}, {3, 3, 0}}), piece({{2, 4, 2}, {3, 3, 0}})}), "it is");
  EXPECT_EQ(why_not_whole({piece({{4, 4, 0}, {1, 3, 2}}), piece({{4, 4, 0}, {2, 3, 0}})}), "it is");
}

TEST(Npy, PiecesThatOverlapOrLeaveSomethingOutAreNone) {
  EXPECT_THAT(why_not_whole({piece({{2, 4, 0}}), piece({{2, 4, 1}})}), HasSubstr("overlap"));
  EXPECT_THAT(why_not_whole({piece({{2, 4, 0}}), piece({{1, 4, 2}})}),
              HasSubstr("leave parts of the array out"));
  EXPECT_THAT(why_not_whole({piece({{2, 4, 0}}), piece({{2, 5, 2}})}),
              HasSubstr("not of one array"));
  EXPECT_THAT(why_not_whole({piece({{2, 4, 3}})}), HasSubstr("not of one array"));
  EXPECT_THAT(why_not_whole({piece({{1ULL << 40, 1ULL << 40, 0}, {1, 1ULL << 40, 0}})}),
              HasSubstr("leave parts"));
  EXPECT_THAT(why_not_whole({piece({})}), HasSubstr("no place in an array"));
}

TEST(Npy, RunsOfAPieceFollowOneAnotherInItAndLieInTheArrayWhereTheyBelong) {
  std::vector<std::vector<std::uint64_t>> runs;
  const auto take = [&](std::uint64_t in_array, std::uint64_t in_piece,
                        std::uint64_t bytes) -> Status {
    runs.push_back({in_array / 8, in_piece / 8, bytes / 8});
    return {};
  };
  ASSERT_TRUE(for_each_run(piece({{2, 3, 1}, {2, 2, 0}, {2, 4, 1}}), take));
  EXPECT_THAT(runs, ElementsAre(ElementsAre(9, 0, 2), ElementsAre(13, 2, 2), ElementsAre(17, 4, 2),
                                ElementsAre(21, 6, 2)));
  runs.clear();
  ASSERT_TRUE(for_each_run(piece({{2, 3, 1}, {2, 2, 0}, {4, 4, 0}}), take));
  EXPECT_THAT(runs, ElementsAre(ElementsAre(8, 0, 16)));
}

TEST(Npy, HeadsAreAlignedAndSayWhatFollows) {
  const std::string head = npy_head({ElementType::float64, 8, {3, 5}});
  EXPECT_EQ(head.size() % 64, 0U);
  EXPECT_THAT(head, HasSubstr("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 5), }"));
  EXPECT_EQ(head.back(), '\n');
  EXPECT_THAT(npy_head({ElementType::float32, 4, {7}}),
              HasSubstr("'<f4', 'fortran_order': False, 'shape': (7,), }"));
  EXPECT_THAT(npy_head({ElementType::bytes, 48, {7}}),
              HasSubstr("'|u1', 'fortran_order': False, 'shape': (7, 48), }"));
}

}  // namespace
}  // namespace diapause::cli
