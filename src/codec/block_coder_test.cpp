#include "codec/block_coder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codec/test_samples.hpp"

namespace diapause::codec {
namespace {

using format::ElementType;
using test::Kind;
using testing::HasSubstr;

constexpr ElementType kTypes[] = {ElementType::bytes, ElementType::int16, ElementType::float32,
                                  ElementType::float64};
constexpr Dims kShapes[] = {{1, 1, 1, 1}, {1, 1, 1, 17}, {1, 1, 61, 33}, {3, 5, 20, 41}};

// A stored block, and what was decoded from it.
struct Trip {
  BlockReport report;
  ByteVector block, back;
};

Trip trip(const Method& method, const Shape& shape, const ByteVector& raw) {
  auto encoder = BlockEncoder::create(method).value();
  Trip result{encoder.encode(raw, shape).value(), {}, ByteVector(raw.size())};
  result.block.assign(encoder.block().begin(), encoder.block().end());
  const auto decoded = BlockDecoder().decode(result.block, shape, result.back);
  EXPECT_TRUE(decoded) << decoded.error().message;
  return result;
}

TEST(LosslessBlocks, ComeBackBitByBitWhateverTheTypeShapeAndData) {
  for (const CodecId codec : {CodecId::raw, CodecId::shuffle_lz4, CodecId::shuffle_zstd}) {
    for (const ElementType type : kTypes) {
      for (const Dims& dims : kShapes) {
        for (const Kind kind : test::kKinds) {
          const Shape shape{type, dims};
          const ByteVector raw = test::data_of(kind, shape);
          const Trip result = trip({codec}, shape, raw);
          ASSERT_EQ(result.back, raw)
              << codec_name(codec) << " " << format::element_type_name(type);
          ASSERT_LE(result.block.size(), raw.size() + kBlockHeaderBytes);
        }
      }
    }
  }
}

// Planes of noise are stored in their place before the others are packed if the block is large
// enough for samples.
TEST(LosslessBlocks, ComeBackWhenOnlySomePlanesShrink) {
  for (const ElementType type :
       {ElementType::bytes, ElementType::int16, ElementType::float32, ElementType::float64}) {
    for (const Kind kind : {Kind::rough, Kind::fill, Kind::constant}) {
      const Shape shape{type, {1, 1, 1, 100003}};
      const ByteVector raw = test::data_of(kind, shape);
      ASSERT_EQ(trip({}, shape, raw).back, raw) << format::element_type_name(type);
    }
  }
  const Shape shape{ElementType::float64, {1, 1, 1, 100003}};
  const BlockReport report = trip({}, shape, test::data_of(Kind::rough, shape)).report;
  EXPECT_EQ(report.codec, CodecId::shuffle_lz4);
  EXPECT_GT(report.stored_bytes, 6 * shape.count());  // the lowest six planes are noise
  EXPECT_LT(report.stored_bytes, 8 * shape.count());
}

TEST(LosslessBlocks, AreSmallWhereTheDataAreConstant) {
  const Shape shape{ElementType::float64, {1, 1, 1, 100000}};
  EXPECT_LT(trip({}, shape, test::data_of(Kind::constant, shape)).block.size(),
            kBlockHeaderBytes + 50);
}

TEST(LosslessBlocks, OfNoiseAreStoredRaw) {
  const Shape shape{ElementType::bytes, {1, 1, 1, 100000}};
  std::mt19937 random(1);
  ByteVector noise(shape.bytes());
  for (std::byte& value : noise) value = static_cast<std::byte>(random());
  EXPECT_EQ(trip({}, shape, noise).report.codec, CodecId::raw);
}

TEST(LosslessBlocks, OfZstdAreSmallerAtAHigherLevel) {
  const Shape shape{ElementType::float64, {1, 1, 100, 1000}};
  const ByteVector raw = test::data_of(Kind::steps, shape);
  EXPECT_LT(trip({CodecId::shuffle_zstd, 0, 12}, shape, raw).block.size(),
            trip({CodecId::shuffle_zstd, 0, -20}, shape, raw).block.size());
}

TEST(Methods, AreRefusedInWords) {
  const auto refusal = [](const Method& method, ElementType type) {
    const Status status = check_method(method, type);
    return status ? std::string("taken") : status.error().message;
  };
  EXPECT_THAT(refusal({CodecId::shuffle_zstd, 0, 77}, ElementType::int32), HasSubstr("level 77"));
  EXPECT_THAT(refusal({CodecId::lattice, 1e-3}, ElementType::uint64), HasSubstr("uint64"));
  for (const double bound : {0.0, -1e-3, HUGE_VAL, std::nan(""), 1e-320}) {
    EXPECT_THAT(refusal({CodecId::lattice, bound}, ElementType::float64), HasSubstr("error bound"));
  }
  EXPECT_EQ(refusal({CodecId::lattice, 1e-3}, ElementType::float32), "taken");
}

TEST(DamagedBlocks, AreDetectedWhereverABitIsFlipped) {
  const Shape shape{ElementType::float64, {1, 1, 10, 100}};
  const Trip sound = trip({}, shape, test::data_of(Kind::steps, shape));
  ByteVector out(shape.bytes());
  BlockDecoder decoder;
  for (std::size_t bit = 0; bit < 8 * sound.block.size(); ++bit) {
    ByteVector damaged = sound.block;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    ASSERT_FALSE(decoder.decode(damaged, shape, out)) << "bit " << bit;
  }
}

TEST(DamagedBlocks, AreDetectedWhenCutShortOrTakenForAnotherRegion) {
  const Shape shape{ElementType::float64, {1, 1, 10, 100}};
  const Trip sound = trip({}, shape, test::data_of(Kind::steps, shape));
  ByteVector out(shape.bytes());
  BlockDecoder decoder;
  const auto cut = decoder.decode(ByteView(sound.block).first(sound.block.size() - 1), shape, out);
  EXPECT_THAT(cut.error().message, HasSubstr("bytes of payload"));
  const auto other = decoder.decode(sound.block, {ElementType::float64, {1, 1, 100, 10}}, out);
  EXPECT_THAT(other.error().message, HasSubstr("another shape"));
}

// Returns a block of `codec` in `version` around an empty payload, with sound checksums.
ByteVector block_of(std::uint32_t codec, std::uint32_t version, const Shape& shape) {
  BlockHeader header;
  header.codec = static_cast<CodecId>(codec);
  header.codec_version = version;
  header.shape = shape;
  if (is_lossy(header.codec)) {
    header.arithmetic = kStrictArithmetic;
    header.bound = 1;
  }
  header.payload_checksum = 0x2d06800538d394c2;  // checksum of no bytes
  return encode_block_header(header);
}

TEST(BlocksOfOtherBuilds, AreRefusedByName) {
  const Shape shape{ElementType::float64, {1, 1, 1, 4}};
  ByteVector out(shape.bytes());
  BlockDecoder decoder;
  const auto unknown = decoder.decode(block_of(99, 1, shape), shape, out);
  EXPECT_EQ(unknown.error().code, Code::mismatch);
  EXPECT_THAT(unknown.error().message, HasSubstr("codec 99"));
  const auto other = decoder.decode(block_of(1, 7, shape), shape, out);
  EXPECT_EQ(other.error().code, Code::mismatch);
  EXPECT_THAT(other.error().message,
              HasSubstr("version 0x7 of codec shuffle+lz4; this build has 0x1"));
}

}  // namespace
}  // namespace diapause::codec
