#include "format/checksum.hpp"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <vector>

#include "format/wire.hpp"

namespace diapause::format {
namespace {

// Published values of XXH3 with seed 0: a file written today must verify with every later library.
TEST(Checksum, IsXxh3WithSeedZero) {
  EXPECT_EQ(checksum64({}), 0x2d06800538d394c2u);
  EXPECT_EQ(digest128({}), (Digest128{0x6001c324468d497fu, 0x99aa06d3014798d8u}));
}

// Whatever instructions this processor has. The library itself is built for the oldest ones.
TEST(Checksum, IsThatOfTheLibraryForEveryLength) {
  ByteVector data(kMiB + 1);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * i >> 7);
  std::vector<std::size_t> lengths = {65536, 65537, data.size() - 1, data.size()};
  for (std::size_t length = 0; length < 3000; ++length) lengths.push_back(length);
  for (const std::size_t length : lengths) {
    const std::uint64_t expected = XXH3_64bits(data.data(), length);
    ASSERT_EQ(checksum64(ByteView(data).first(length)), expected) << length;
    Checksum64 sum;
    sum.update(ByteView(data).first(length / 3));
    sum.update(ByteView(data).subspan(length / 3, length - length / 3));
    ASSERT_EQ(sum.value(), expected) << length;
  }
}

TEST(Checksum, ChangesWithEveryBitOfABlock) {
  ByteVector block(4096, std::byte{0});
  const std::uint64_t before = checksum64(block);
  for (std::size_t bit = 0; bit < block.size() * 8; ++bit) {
    const auto mask = static_cast<std::byte>(1u << bit % 8);
    block[bit / 8] ^= mask;
    ASSERT_NE(checksum64(block), before) << "bit " << bit;
    block[bit / 8] ^= mask;
  }
}

TEST(Checksum, IsTheSameOfDataThatComeInPieces) {
  ByteVector data(5000);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * i >> 5);
  Checksum64 sum;
  std::size_t at = 0;
  for (std::size_t size = 0; at < data.size(); size = 3 * size + 1) {
    const ByteView piece = ByteView(data).subspan(at).first(std::min(size, data.size() - at));
    sum.update(piece);
    at += piece.size();
    EXPECT_EQ(sum.value(), checksum64(ByteView(data).first(at)));
  }
}

TEST(CommitId, IsWrittenAs32LowerCaseDigits) {
  CommitId id;
  id.bytes = {0x00, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xff};
  EXPECT_EQ(id.hex(), "000123456789abcdefff000000000000");
}

TEST(VersionId, OfALaterIncarnationIsNewerWhateverItsNumber) {
  const VersionId early{1, 900, {}}, late{2, 3, {}};
  EXPECT_LT(early, late);
}

TEST(Wire, PutsTheLowestByteFirst) {
  Writer writer(12);
  writer.u32(0x01020304);
  writer.u64(0x1112131415161718);
  const ByteVector bytes = writer.take();
  EXPECT_EQ(bytes.front(), std::byte{0x04});
  EXPECT_EQ(bytes.back(), std::byte{0x11});
  Reader reader(bytes);
  EXPECT_EQ(reader.u32(), 0x01020304u);
  EXPECT_EQ(reader.u64(), 0x1112131415161718u);
  EXPECT_TRUE(reader.ok());
}

TEST(Wire, StaysBrokenAfterAReadBehindTheEnd) {
  const ByteVector bytes(6, std::byte{1});
  Reader reader(bytes);
  EXPECT_EQ(reader.u64(), 0u);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.u32(), 0u);  // the six bytes are not handed out later
  EXPECT_FALSE(reader.ok());
}

TEST(Wire, CountsItemsWithoutOverflow) {
  const ByteVector bytes(64, std::byte{0});
  const Reader reader(bytes);
  EXPECT_TRUE(reader.has_items(8, 8));
  EXPECT_FALSE(reader.has_items(9, 8));
  EXPECT_FALSE(reader.has_items(UINT64_MAX / 4, 8));  // times 8 wraps to a small number
}

}  // namespace
}  // namespace diapause::format
