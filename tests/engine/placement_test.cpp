// Tests how an image that comes in pieces gets to the program's memory.
#include "engine/restart/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/bytes.hpp"

namespace diapause::engine {
namespace {

using ::testing::HasSubstr;

// An image with regions of these sizes, and memory for them.
struct Placed {
  explicit Placed(const std::vector<std::uint64_t>& sizes) {
    for (const std::uint64_t size : sizes) {
      format::Region region;
      region.name = "r" + std::to_string(index.regions.size());
      region.count = size;
      index.regions.push_back(region);
    }
    image.resize(format::lay_out(index).value());
    std::uint32_t state = 1;
    for (std::byte& byte : image)
      byte = static_cast<std::byte>((state = state * 1664525 + 1013904223) >> 24);
    for (format::Region& region : index.regions) {
      for (std::uint64_t block = 0; block < region.block_count(); ++block) {
        const std::uint64_t begin = block * format::kBlockBytes;
        const std::uint64_t length =
            std::min<std::uint64_t>(format::kBlockBytes, region.stored_bytes - begin);
        region.block_checksums[block] = format::checksum64(bytes_of(region).subspan(begin, length));
      }
      memory.emplace_back(region.stored_bytes, std::byte{0xee});
    }
  }

  ByteView bytes_of(const format::Region& region) const {
    return ByteView(image).subspan(region.offset, region.stored_bytes);
  }

  // Gives the data of the image in pieces of that size. A region in `left_out` is not wanted.
  Status place(std::uint64_t piece_bytes, std::size_t left_out = SIZE_MAX) {
    std::vector<std::byte*> targets;
    for (std::size_t r = 0; r < memory.size(); ++r)
      targets.push_back(r == left_out ? nullptr : memory[r].data());
    const std::string name = "the image";
    Placement placement(index, targets, name);
    for (std::uint64_t at = format::kHeaderBytes; at < image.size(); at += piece_bytes) {
      const std::uint64_t length = std::min<std::uint64_t>(piece_bytes, image.size() - at);
      placement.take(at, ByteView(image).subspan(at, length));
    }
    return placement.result();
  }

  bool holds(std::size_t region) const {
    return std::ranges::equal(memory[region], bytes_of(index.regions[region]));
  }

  format::ImageIndex index;
  ByteVector image;
  std::vector<ByteVector> memory;
};

const std::vector<std::uint64_t> kSizes = {0, 1, 5000, kMiB + 3, 0, 4096, 2 * kMiB};

TEST(Placement, PutsRegionsOfAnySizeFromPiecesOfAnySize) {
  for (const std::uint64_t piece_bytes : {777u, 4096u, 262144u, 1048576u, 16777216u}) {
    Placed placed(kSizes);
    const Status result = placed.place(piece_bytes);
    ASSERT_TRUE(result) << piece_bytes << ": " << result.error().message;
    for (std::size_t r = 0; r < kSizes.size(); ++r) EXPECT_TRUE(placed.holds(r)) << piece_bytes;
  }
}

TEST(Placement, PutsManySmallRegionsThatSharePages) {
  Placed placed(std::vector<std::uint64_t>(1000, 100));
  ASSERT_TRUE(placed.place(262144));
  for (std::size_t r = 0; r < 1000; ++r) EXPECT_TRUE(placed.holds(r)) << r;
}

TEST(Placement, NamesTheBlockThatIsDamaged) {
  Placed placed(kSizes);
  placed.image[placed.index.regions[3].offset + kMiB + 1] ^= std::byte{1};
  const Status result = placed.place(262144);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::corrupt);
  EXPECT_THAT(result.error().message, HasSubstr("the image: block 1 of region 'r3' is damaged"));
}

TEST(Placement, NeitherPutsNorChecksWhatIsNotWanted) {
  Placed placed(kSizes);
  placed.image[placed.index.regions[3].offset] ^= std::byte{1};
  ASSERT_TRUE(placed.place(262144, 3));
  EXPECT_TRUE(placed.holds(2));
  EXPECT_TRUE(placed.holds(5));
  EXPECT_EQ(placed.memory[3].front(), std::byte{0xee});
}

}  // namespace
}  // namespace diapause::engine
