#include "energy/series.hpp"

#include <gmock/gmock.h>

namespace diapause::energy {
namespace {

// 100 W from 0 s on, a point each 0.1 s.
Series constant_power(int points) {
  Series series(0.001);
  for (int i = 0; i < points; ++i) series.add({0.1 * i, 10.0 * i, 0.1 * i});
  return series;
}

Amount between(const Series& series, double from_s, double to_s) { return series.between(from_s, to_s, 0.001); }

TEST(Series, TellsEnergyBetweenSamples) {
  const Amount amount = between(constant_power(100), 0.25, 0.75);
  EXPECT_NEAR(amount.joules, 50, 1e-9);
  EXPECT_FALSE(amount.has_gap());
}

TEST(Series, StretchesAddUpToTheWhole) {
  const Series series = constant_power(100);
  double sum = 0;
  for (int i = 0; i < 90; ++i) sum += between(series, 0.11 * i, 0.11 * (i + 1)).joules;
  EXPECT_NEAR(sum, between(series, 0, 0.11 * 90).joules, 1e-9);
}

TEST(Series, BeforeTheFirstAndAfterTheLastPointIsAGap) {
  const Amount amount = between(constant_power(11), -1, 3);
  EXPECT_NEAR(amount.joules, 100, 0.2);
  EXPECT_NEAR(amount.gap_s, 3, 0.002);
  EXPECT_NEAR(amount.covered_s, 1, 0.002);
}

TEST(Series, OfASlowSourceGoesOnUntilItIsDueAgain) {
  Series series(2);
  series.add({0, 0, 0});
  series.add({2, 200, 2});
  EXPECT_NEAR(between(series, 0, 4).joules, 400, 1e-9);
  EXPECT_FALSE(between(series, 0, 4).has_gap());
  EXPECT_NEAR(between(series, 0, 10).gap_s, 5, 1e-9);
}

TEST(Series, WithoutPointsIsAllGap) {
  const Amount amount = between(Series(1), 1, 2);
  EXPECT_EQ(amount.gap_s, 1);
  EXPECT_EQ(amount.covered_s, 0);
}

TEST(Series, GapCountsOnlyWhereItLies) {
  Series series(0.001);
  series.add({0, 0, 0});
  series.add({1, 100, 1});
  series.add({3, 100, 1});
  series.add({4, 200, 2});
  EXPECT_NEAR(between(series, 0, 4).gap_s, 2, 1e-9);
  EXPECT_FALSE(between(series, 0, 1).has_gap());
  EXPECT_NEAR(between(series, 2, 3.5).gap_s, 1, 1e-9);
}

TEST(Series, UncertaintyGrowsWithTheDistanceToASample) {
  const Series series = constant_power(100);
  const double at_samples = between(series, 0.2, 0.8).uncertainty_j;
  const double beside_samples = between(series, 0.25, 0.85).uncertainty_j;
  EXPECT_NEAR(at_samples, 2 * 0.001 + 2 * 100 * 0.001, 1e-6);
  EXPECT_NEAR(beside_samples, 2 * 0.001 + 2 * 100 * 0.05, 1e-6);
}

TEST(Series, ForgetsNothingHoweverLong) {
  constexpr int kPoints = 200000;
  const Series series = constant_power(kPoints);
  EXPECT_NEAR(between(series, 0, 0.1 * (kPoints - 1)).joules, 10.0 * (kPoints - 1), 1e-3);
  EXPECT_NEAR(between(series, 10, 20).joules, 1000, 1e-3);
  EXPECT_FALSE(between(series, 10, 20).has_gap());
}

}  // namespace
}  // namespace diapause::energy
