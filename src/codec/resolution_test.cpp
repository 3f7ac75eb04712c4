#include "codec/resolution.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "codec/block_coder.hpp"

namespace diapause::codec {
namespace {

using testing::HasSubstr;

Status checked(double bound, const std::vector<double>& values) {
  return check_resolution({CodecId::lattice, bound}, format::ElementType::float64,
                          std::as_bytes(std::span(values)));
}

// Returns a field whose values reach up to `greatest`.
std::vector<double> up_to(double greatest) {
  std::vector<double> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = greatest * std::sin(static_cast<double>(i) + 0.5);
  values[500] = -greatest;
  return values;
}

TEST(Resolution, RefusesBoundsBelowFourUnitsInTheLastPlaceAndNoOthers) {
  const double least = std::ldexp(1.0, -50);  // the spacing of doubles with 53 digits near 1
  EXPECT_TRUE(checked(least, up_to(1)));
  const Status refused = checked(0.99 * least, up_to(1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::argument);
  EXPECT_THAT(refused.error().message,
              HasSubstr("largest value, 1; the least bound for that is 8.88178"));
}

TEST(Resolution, IsThatOfTheType) {
  const std::vector<float> values = {1000.0F, 0.5F};
  const auto check = [&](double bound) {
    return check_resolution({CodecId::lattice, bound}, format::ElementType::float32,
                            std::as_bytes(std::span(values)));
  };
  EXPECT_TRUE(check(1e-3));
  EXPECT_FALSE(check(1e-5));
}

TEST(Resolution, IsNotOfWhatIsNoNumberOrNoValueOrZero) {
  std::vector<double> values = up_to(1);
  values[3] = std::numeric_limits<double>::infinity();
  values[4] = std::numeric_limits<double>::quiet_NaN();
  std::fill(values.begin() + 600, values.end(), -1e34);
  EXPECT_TRUE(checked(1e-6, values));
  EXPECT_TRUE(checked(1e-300, std::vector<double>(1000)));
  EXPECT_TRUE(checked(1e-300, {}));
}

TEST(Resolution, IsOfAFieldThatIsTheSameEverywhere) {
  EXPECT_FALSE(checked(1e-14, std::vector<double>(1000, 300.0)));
  EXPECT_TRUE(checked(1e-12, std::vector<double>(1000, 300.0)));
}

// The codecs get the same values with the same bound.
TEST(Resolution, IsTheRuleOfTheCodecs) {
  for (const double bound : {1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17}) {
    const std::vector<double> values = up_to(37.5);
    auto encoder = BlockEncoder::create({CodecId::lattice, bound}).value();
    const auto report = encoder.encode(std::as_bytes(std::span(values)),
                                       {format::ElementType::float64, {1, 1, 1, 1000}});
    ASSERT_TRUE(report);
    EXPECT_EQ(checked(bound, values).has_value(), report->fallback != Fallback::bound_too_small)
        << bound;
  }
}

}  // namespace
}  // namespace diapause::codec
