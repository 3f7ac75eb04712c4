// Tests of what holds for every codec with a bound that this build has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "codec/block_coder.hpp"
#include "codec/guard.hpp"
#include "codec/test_samples.hpp"

namespace diapause::codec {
namespace {

using format::ElementType;
using test::Kind;
using testing::HasSubstr;

constexpr ElementType kLossyTypes[] = {ElementType::float32, ElementType::float64};
constexpr Dims kLossyShapes[] = {{1, 1, 1, 1},   {1, 1, 1, 17},  {1, 1, 1, 3000}, {1, 1, 700, 3},
                                 {1, 1, 40, 60}, {1, 7, 20, 31}, {3, 4, 9, 21}};
constexpr double kBounds[] = {1e6, 1.0, 1e-3, 1e-8, 1e-300};

class LossyCodec : public testing::TestWithParam<CodecId> {
 protected:
  void SetUp() override {
    if (!make_codec(GetParam())) GTEST_SKIP() << make_codec(GetParam()).error().message;
  }
};

// Compares independently of the values that the guard compares, and of its method.
template <class Float>
::testing::AssertionResult within(const ByteVector& raw, const ByteVector& back, double bound) {
  for (std::size_t at = 0; at < raw.size(); at += sizeof(Float)) {
    Float was, is;
    std::memcpy(&was, raw.data() + at, sizeof was);
    std::memcpy(&is, back.data() + at, sizeof is);
    const bool same = std::memcmp(&was, &is, sizeof was) == 0;
    if (same ||
        (std::isfinite(was) && std::isfinite(is) && std::abs(double{was} - double{is}) <= bound))
      continue;
    return ::testing::AssertionFailure()
           << was << " came back as " << is << " at " << at / sizeof(Float);
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult within(const Shape& shape, const ByteVector& raw, const ByteVector& back,
                                  double bound) {
  return shape.type == ElementType::float32 ? within<float>(raw, back, bound)
                                            : within<double>(raw, back, bound);
}

void expect_bound_kept(BlockEncoder& encoder, const Shape& shape, const ByteVector& raw,
                       double bound) {
  const auto report = encoder.encode(raw, shape);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_LE(encoder.block().size(), raw.size() + kBlockHeaderBytes);
  ByteVector back(raw.size());
  const auto decoded = BlockDecoder().decode(encoder.block(), shape, back);
  ASSERT_TRUE(decoded) << decoded.error().message;
  if (is_lossy(report->codec)) {
    ASSERT_TRUE(within(shape, raw, back, bound));
  } else {
    ASSERT_EQ(raw, back);
  }
}

TEST_P(LossyCodec, KeepsTheBoundOrTheBitsWhateverTheDataAre) {
  for (const double bound : kBounds) {
    auto encoder = BlockEncoder::create({GetParam(), bound}).value();
    for (const ElementType type : kLossyTypes) {
      for (const Dims& dims : kLossyShapes) {
        for (const Kind kind : test::kKinds) {
          SCOPED_TRACE(testing::Message()
                       << "bound " << bound << ", " << format::element_type_name(type) << ", kind "
                       << static_cast<int>(kind) << ", " << testing::PrintToString(dims));
          expect_bound_kept(encoder, {type, dims}, test::data_of(kind, {type, dims}), bound);
        }
      }
    }
  }
}

TEST_P(LossyCodec, KeepsTheBoundOnRandomShapesAndBounds) {
  std::mt19937 random(7);
  for (int i = 0; i < 150; ++i) {
    const Shape shape{kLossyTypes[random() % 2],
                      {1 + random() % 3, 1 + random() % 5, 1 + random() % 30, 1 + random() % 50}};
    const double bound = std::ldexp(1, static_cast<int>(random() % 60) - 40);
    auto encoder = BlockEncoder::create({GetParam(), bound}).value();
    const Kind kind = test::kKinds[random() % std::size(test::kKinds)];
    SCOPED_TRACE(testing::Message() << "bound " << bound << ", kind " << static_cast<int>(kind)
                                    << ", " << testing::PrintToString(shape.dims));
    expect_bound_kept(encoder, shape, test::data_of(kind, shape, static_cast<std::uint32_t>(i)),
                      bound);
  }
}

TEST_P(LossyCodec, IsUsedWhereDataAreSmoothAndReportsItsGreatestError) {
  for (const ElementType type : kLossyTypes) {
    const Shape shape{type, {1, 1, 100, 200}};
    auto encoder = BlockEncoder::create({GetParam(), 1e-2}).value();
    const auto report = encoder.encode(test::data_of(Kind::smooth, shape), shape).value();
    EXPECT_EQ(report.codec, GetParam());
    EXPECT_EQ(report.fallback, Fallback::none);
    EXPECT_LT(report.stored_bytes * 3, report.raw_bytes);
    EXPECT_GT(report.greatest_error, 1e-4);
    EXPECT_LE(report.greatest_error, 1e-2);
  }
}

TEST_P(LossyCodec, GivesWayWhereTheBitsTakeLess) {
  const Shape shape{ElementType::float64, {1, 1, 100, 200}};
  auto encoder = BlockEncoder::create({GetParam(), 1e-9}).value();
  ByteVector raw = test::data_of(Kind::noise, shape);
  // A repetition is free without loss.
  for (std::size_t i = 0; i < raw.size(); ++i) raw[i] = raw[i % 4096];
  const auto report = encoder.encode(raw, shape).value();
  EXPECT_EQ(report.codec, CodecId::shuffle_lz4);
}

TEST_P(LossyCodec, GivesWayToTheBitsWhereTheBoundIsBelowWhatTheValuesResolve) {
  const Shape shape{ElementType::float32, {1, 1, 10, 100}};
  auto encoder = BlockEncoder::create({GetParam(), 1e-6}).value();  // with values around 300
  const auto report = encoder.encode(test::data_of(Kind::rough, shape), shape).value();
  EXPECT_FALSE(is_lossy(report.codec));
  EXPECT_EQ(report.fallback, Fallback::bound_too_small);
}

TEST_P(LossyCodec, LetsFillValuesCostNextToNothing) {
  const Shape shape{ElementType::float32, {1, 1, 300, 300}};
  auto encoder = BlockEncoder::create({GetParam(), 1e-2}).value();
  const auto report = encoder.encode(test::data_of(Kind::fill, shape), shape).value();
  EXPECT_EQ(report.codec, GetParam());
  EXPECT_LT(report.stored_bytes * 3, report.raw_bytes);
}

TEST_P(LossyCodec, DetectsEveryFlippedBit) {
  const Shape shape{ElementType::float64, {1, 1, 30, 40}};
  auto encoder = BlockEncoder::create({GetParam(), 1e-3}).value();
  (void)encoder.encode(test::data_of(Kind::rough, shape), shape).value();
  ByteVector damaged(encoder.block().begin(), encoder.block().end()), out(shape.bytes());
  BlockDecoder decoder;
  for (std::size_t bit = 0; bit < 8 * damaged.size(); ++bit) {
    damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    ASSERT_FALSE(decoder.decode(damaged, shape, out)) << "bit " << bit;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  }
}

// A million over the three codecs if DIAPAUSE_LONG_TESTS is set (make test-long).
TEST_P(LossyCodec, DetectsTwoFlippedBits) {
  const bool is_long = std::getenv("DIAPAUSE_LONG_TESTS") != nullptr;
  const Shape shape{ElementType::float64, {1, 1, 60, 80}};
  auto encoder = BlockEncoder::create({GetParam(), 1e-3}).value();
  (void)encoder.encode(test::data_of(Kind::rough, shape), shape).value();
  ByteVector damaged(encoder.block().begin(), encoder.block().end()), out(shape.bytes());
  BlockDecoder decoder;
  std::mt19937 random(11);
  for (int i = 0; i < (is_long ? 340000 : 3000); ++i) {
    const std::size_t bits[] = {random() % (8 * damaged.size()), random() % (8 * damaged.size())};
    if (bits[0] == bits[1]) continue;
    for (const std::size_t bit : bits) damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    ASSERT_FALSE(decoder.decode(damaged, shape, out)) << "bits " << bits[0] << " and " << bits[1];
    for (const std::size_t bit : bits) damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  }
}

INSTANTIATE_TEST_SUITE_P(All, LossyCodec,
                         testing::Values(CodecId::lattice, CodecId::sz3, CodecId::zfp),
                         [](const auto& codec) { return std::string(codec_name(codec.param)); });

TEST(Guard, FindsTheOneValueThatIsOutOfBounds) {
  for (const ElementType type : kLossyTypes) {
    const Shape shape{type, {1, 1, 1, 1003}};
    const ByteVector raw = test::data_of(Kind::smooth, shape);
    EXPECT_EQ(greatest_error(raw, raw, shape, 1e-3), 0.0);
    for (std::uint64_t i = 0; i < shape.count(); ++i) {
      ByteVector other = raw;
      other[(i + 1) * shape.element_bytes() - 2] ^= std::byte{0x10};
      ASSERT_FALSE(greatest_error(raw, other, shape, 1e-3)) << i;
    }
  }
}

TEST(Guard, WantsTheSameBitsOfWhatIsNoNumberOrInfinite) {
  const Shape shape{ElementType::float64, {1, 1, 1, 1}};
  const auto bytes_of = [](double value) {
    const ByteView view = as_byte_view(value);
    return ByteVector(view.begin(), view.end());
  };
  const ByteVector no_number = bytes_of(std::nan("")), infinite = bytes_of(HUGE_VAL),
                   one = bytes_of(1);
  EXPECT_TRUE(greatest_error(no_number, no_number, shape, 1));
  EXPECT_TRUE(greatest_error(infinite, infinite, shape, 1));
  EXPECT_FALSE(greatest_error(no_number, bytes_of(std::nan("1")), shape, 1));
  EXPECT_FALSE(greatest_error(no_number, one, shape, 1));
  EXPECT_FALSE(greatest_error(one, no_number, shape, 1));
  EXPECT_FALSE(greatest_error(infinite, bytes_of(-HUGE_VAL), shape, 1));
  EXPECT_FALSE(greatest_error(one, infinite, shape, 1e300));
}

TEST(UniformQuantiser, HoldsNumbersOfMoreThan32Bits) {
  const Shape shape{ElementType::float64, {1, 1, 100, 100}};
  auto encoder = BlockEncoder::create({CodecId::lattice, 1e-9}).value();
  const auto report = encoder.encode(test::data_of(Kind::smooth, shape), shape)
                          .value();  // the difference is 320 / 2e-9
  EXPECT_EQ(report.codec, CodecId::lattice);
  EXPECT_EQ(report.fallback, Fallback::none);
}

// A few 32-bit values that rounding takes out of the bound are no reason to search for outliers or
// to give up.
TEST(UniformQuantiser, KeepsSingleValuesThatRoundingTakesOutOfTheBound) {
  const Shape shape{ElementType::float32, {1, 1, 100, 1000}};
  const double bound = 1e-3;
  const ByteVector raw = test::data_of(Kind::rough, shape);
  auto encoder = BlockEncoder::create({CodecId::lattice, bound}).value();
  expect_bound_kept(encoder, shape, raw, bound);
  EXPECT_TRUE(is_lossy(encoder.encode(raw, shape)->codec));
}

TEST(UniformQuantiser, KeepsLongRunsOfFillValues) {
  const Shape shape{ElementType::float32, {1, 1, 40, 500}};
  ByteVector raw = test::data_of(Kind::smooth, shape);
  const float fill = -1e34F;
  for (std::uint64_t i = 0; i < shape.count(); ++i) {
    if (i / 500 % 4 == 1) std::memcpy(raw.data() + i * sizeof fill, &fill, sizeof fill);
  }
  auto encoder = BlockEncoder::create({CodecId::lattice, 1e-2}).value();
  expect_bound_kept(encoder, shape, raw, 1e-2);
  const auto report = encoder.encode(raw, shape).value();
  EXPECT_EQ(report.codec, CodecId::lattice);
  EXPECT_LT(report.stored_bytes, raw.size() / 4);
}

TEST(UniformQuantiser, IsRefusedWithoutHarmWhateverItsPayloadIs) {
  const auto codec = make_codec(CodecId::lattice).value();
  const Shape shape{ElementType::float64, {1, 2, 30, 40}};
  ByteVector payload(shape.bytes()), out(shape.bytes());
  const ByteVector raw = test::data_of(Kind::fill, shape);
  payload.resize(codec->encode(raw, shape, {CodecId::lattice, 1e-3}, payload).value());
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    ByteVector damaged = payload;
    for (int k = 0; k < 3; ++k)
      damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    if (i % 4 == 0) damaged.resize(random() % damaged.size());
    (void)codec->decode(damaged, shape, 1e-3, out);  // the sanitizers check this
  }
}

}  // namespace
}  // namespace diapause::codec
