#include "redundancy/shared_files.hpp"

#include <gmock/gmock.h>

#include "base/bytes.hpp"

namespace diapause::redundancy {
namespace {

using testing::Each;
using testing::ElementsAre;

TEST(SharedFiles, TakeConsecutiveRanksInEvenRuns) {
  EXPECT_THAT(spread_over_files(8, 2), ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
  EXPECT_THAT(spread_over_files(5, 2), ElementsAre(0, 0, 0, 1, 1));
  EXPECT_THAT(spread_over_files(3, 9), ElementsAre(0, 1, 2));
  EXPECT_THAT(spread_over_files(3, 0), Each(0));
  EXPECT_TRUE(spread_over_files(0, 4).empty());
}

TEST(SharedFiles, LeaveNoFileEmptyAndNoneTwiceAsFullAsAnother) {
  for (std::uint32_t ranks = 1; ranks < 40; ++ranks) {
    for (std::uint32_t files = 1; files <= ranks; ++files) {
      std::vector<std::uint32_t> count(files);
      for (const std::uint32_t file : spread_over_files(ranks, files)) ++count.at(file);
      const auto [least, most] = std::minmax_element(count.begin(), count.end());
      EXPECT_GE(*least, 1u);
      EXPECT_LE(*most - *least, 1u) << ranks << " ranks in " << files << " files";
    }
  }
}

TEST(SharedFiles, HoldImagesOneAfterTheOtherOnWholePages) {
  const std::uint64_t sizes[] = {4097, 8192, 5000, 4096};
  const std::uint32_t files[] = {0, 0, 1, 0};
  const auto layout = lay_out_files(sizes, files);
  ASSERT_TRUE(layout);
  EXPECT_THAT(layout->file_bytes, ElementsAre(8192 + 8192 + 4096, 8192));
  EXPECT_EQ(layout->places[1].offset, 8192u);
  EXPECT_EQ(layout->places[2].file, 1u);
  EXPECT_EQ(layout->places[2].offset, 0u);
  EXPECT_EQ(layout->places[3].offset, 16384u);
}

TEST(SharedFiles, NeverOverlap) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t rank = 0; rank < 50; ++rank)
    sizes.push_back(4096 + rank * rank * 977 % 100000);
  const auto layout = lay_out_files(sizes, spread_over_files(50, 7));
  ASSERT_TRUE(layout);
  for (std::size_t rank = 1; rank < sizes.size(); ++rank) {
    const auto &before = layout->places[rank - 1], &here = layout->places[rank];
    EXPECT_TRUE(here.file != before.file || here.offset >= before.offset + sizes[rank - 1]) << rank;
    EXPECT_EQ(here.offset % kPageBytes, 0u);
    EXPECT_LE(here.offset + sizes[rank], layout->file_bytes[here.file]);
  }
}

TEST(SharedFiles, ThatWouldBeTooLargeAreRefused) {
  const std::uint64_t sizes[] = {std::uint64_t{1} << 62, std::uint64_t{1} << 62};
  EXPECT_TRUE(lay_out_files(sizes, spread_over_files(2, 2)));
  const auto one = lay_out_files(sizes, spread_over_files(2, 1));
  ASSERT_FALSE(one);
  EXPECT_THAT(one.error().message, testing::HasSubstr("global.files"));
}

}  // namespace
}  // namespace diapause::redundancy
