#include "codec/block.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/checksum.hpp"

namespace diapause::codec {
namespace {

using format::ElementType;
using testing::HasSubstr;

BlockHeader lossy_header() {
  BlockHeader header;
  header.codec = CodecId::lattice;
  header.codec_version = 1;
  header.arithmetic = kStrictArithmetic;
  header.shape = {ElementType::float32, {1, 3, 5, 7}};
  header.bound = 1e-3;
  header.payload_bytes = 99;
  header.payload_checksum = 11;
  header.decoded_checksum = 12;
  return header;
}

Error refusal(const BlockHeader& header) {
  return decode_block_header(encode_block_header(header)).error();
}

// Returns the header with one number changed and a correct checksum.
ByteVector with_u32(std::size_t offset, std::uint32_t value) {
  ByteVector bytes = encode_block_header(lossy_header());
  for (std::size_t i = 0; i < 4; ++i) bytes[offset + i] = static_cast<std::byte>(value >> (8 * i));
  const std::uint64_t checksum = format::checksum64(ByteView(bytes).first(bytes.size() - 8));
  for (std::size_t i = 0; i < 8; ++i)
    bytes[bytes.size() - 8 + i] = static_cast<std::byte>(checksum >> (8 * i));
  return bytes;
}

TEST(BlockHeader, ComesBackAsItWas) {
  const ByteVector bytes = encode_block_header(lossy_header());
  EXPECT_EQ(bytes.size(), kBlockHeaderBytes);
  const auto header = decode_block_header(bytes);
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(*header, lossy_header());
}

TEST(BlockHeader, IsRefusedWithAnyBitFlipped) {
  const ByteVector sound = encode_block_header(lossy_header());
  for (std::size_t bit = 0; bit < 8 * sound.size(); ++bit) {
    ByteVector damaged = sound;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_FALSE(decode_block_header(damaged)) << "bit " << bit;
  }
}

TEST(BlockHeader, IsRefusedWhenCutShort) {
  const ByteVector sound = encode_block_header(lossy_header());
  EXPECT_THAT(decode_block_header(ByteView(sound).first(60)).error().message,
              HasSubstr("60 bytes"));
}

TEST(BlockHeader, OfAnotherFormatByteOrderOrArithmeticIsAMismatchThatNamesBoth) {
  const std::pair<std::size_t, const char*> fields[] = {{8, "format version 7; this build reads 1"},
                                                        {12, "byte order 7"},
                                                        {24, "arithmetic 7; this build has 1"}};
  for (const auto& [offset, text] : fields) {
    const auto header = decode_block_header(with_u32(offset, 7));
    ASSERT_FALSE(header);
    EXPECT_EQ(header.error().code, Code::mismatch);
    EXPECT_THAT(header.error().message, HasSubstr(text));
  }
}

TEST(BlockHeader, IsRefusedWithSizesThatNoBlockHas) {
  BlockHeader header = lossy_header();
  header.shape.dims = {1, 1, std::uint64_t{1} << 40, std::uint64_t{1} << 40};
  EXPECT_THAT(refusal(header).message, HasSubstr("dimensions"));
  header.shape.dims = {1, 1, 0, 8};
  EXPECT_THAT(refusal(header).message, HasSubstr("dimensions"));
  header = lossy_header();
  header.payload_bytes = header.shape.bytes() + 1;
  EXPECT_THAT(refusal(header).message, HasSubstr("larger than the data"));
}

TEST(BlockHeader, IsRefusedWhereLossMeetsIntegersOrHasNoBound) {
  BlockHeader header = lossy_header();
  header.shape.type = ElementType::int32;
  EXPECT_THAT(refusal(header).message, HasSubstr("not floating-point"));
  for (const double bound : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    header = lossy_header();
    header.bound = bound;
    EXPECT_THAT(refusal(header).message, HasSubstr("bound")) << bound;
  }
}

format::Region region_of(ElementType type, std::vector<std::uint64_t> shape) {
  format::Region region;
  region.type = type;
  region.element_bytes = std::max<std::uint64_t>(1, format::element_bytes_of(type));
  region.count = 1;
  for (const std::uint64_t dim : shape) {
    region.count *= dim;
    region.place.push_back({dim, dim, 0});
  }
  return region;
}

// Checks that the blocks follow each other without a gap, none is too large, and together they are
// the whole region.
void expect_whole(const BlockPlan& plan, std::uint64_t target_bytes) {
  std::uint64_t end = 0;
  for (std::uint64_t i = 0; i < plan.block_count(); ++i) {
    ASSERT_EQ(plan.offset_of(i), end) << "block " << i;
    const std::uint64_t bytes = plan.shape_of(i).bytes();
    ASSERT_GT(bytes, 0u);
    ASSERT_LE(bytes, target_bytes);
    end += bytes;
  }
  EXPECT_EQ(end, plan.raw_bytes());
}

TEST(BlockPlan, CoversRegionsOfAllShapesInOrder) {
  const std::vector<std::uint64_t> shapes[] = {
      {1},       {1000},       {7, 1000},       {1000, 7},        {3, 100, 11},
      {1, 1, 5}, {2, 3, 4, 5}, {2, 2, 2, 2, 9}, {1, 300, 1, 300}, {0, 4}};
  for (const auto& shape : shapes) {
    for (const std::uint64_t target : {64, 1000, 100000}) {
      SCOPED_TRACE(testing::PrintToString(shape) + " in blocks of " + std::to_string(target));
      expect_whole(BlockPlan(region_of(ElementType::float64, shape), target), target);
    }
  }
}

TEST(BlockPlan, KeepsTheDimensionsOfWhatItCuts) {
  const BlockPlan plan(region_of(ElementType::float32, {10, 20, 30}), 4 * 20 * 30 * 4);
  EXPECT_EQ(plan.block_count(), 3u);
  EXPECT_EQ(plan.shape_of(0).dims, (Dims{1, 4, 20, 30}));
  EXPECT_EQ(plan.shape_of(2).dims, (Dims{1, 3, 20, 30}));
}

TEST(BlockPlan, TakesBytesAndUnplacedElementsAsRows) {
  format::Region region = region_of(ElementType::bytes, {});
  region.element_bytes = 24;
  region.count = 5;
  EXPECT_EQ(BlockPlan(region, kMiB).shape_of(0).dims, (Dims{1, 1, 1, 120}));
  region = region_of(ElementType::int16, {});
  region.count = 9;
  EXPECT_EQ(BlockPlan(region, kMiB).shape_of(0).dims, (Dims{1, 1, 1, 9}));
}

TEST(BlockPlan, SeesMoreThanFourDimensionsAsFour) {
  const BlockPlan plan(region_of(ElementType::float64, {2, 3, 4, 5, 6}), kMiB);
  EXPECT_EQ(plan.shape_of(0).dims, (Dims{6, 4, 5, 6}));
}

}  // namespace
}  // namespace diapause::codec
