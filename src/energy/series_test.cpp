#include "energy/series.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace diapause::energy {
namespace {

// The power is 100 W from 0 s on, and there is a point every 0.1 s.
Series constant_power(int points) {
  Series series({.update_s = 0.001, .lag_s = 0.001, .resolution_j = 0.001});
  for (int i = 0; i < points; ++i) series.add({0.1 * i, 10.0 * i, 0.1 * i});
  return series;
}

Amount between(const Series& series, double from_s, double to_s) {
  return series.between(from_s, to_s);
}

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
  Series series({.update_s = 2, .lag_s = 2});
  series.add({0, 0, 0});
  series.add({2, 200, 2});
  EXPECT_NEAR(between(series, 0, 4).joules, 400, 1e-9);
  EXPECT_FALSE(between(series, 0, 4).has_gap());
  EXPECT_NEAR(between(series, 0, 10).gap_s, 5, 1e-9);
}

TEST(Series, WithoutPointsIsAllGap) {
  const Amount amount = between(Series({.update_s = 1, .lag_s = 1}), 1, 2);
  EXPECT_EQ(amount.gap_s, 1);
  EXPECT_EQ(amount.covered_s, 0);
}

TEST(Series, GapCountsOnlyWhereItLies) {
  Series series({.update_s = 0.001, .lag_s = 0.001, .resolution_j = 0.001});
  series.add({0, 0, 0});
  series.add({1, 100, 1});
  series.add({3, 100, 1});
  series.add({4, 200, 2});
  EXPECT_NEAR(between(series, 0, 4).gap_s, 2, 1e-9);
  EXPECT_FALSE(between(series, 0, 1).has_gap());
  EXPECT_NEAR(between(series, 2, 3.5).gap_s, 1, 1e-9);
}

// The highest power of this source is known.
Series limited_power(double watts, double peak_w) {
  Series series({.update_s = 0.001, .peak_w = peak_w});
  for (int i = 0; i < 100; ++i) series.add({1.0 * i, watts * i, 1.0 * i});
  return series;
}

TEST(Series, UncertaintyGrowsWithTheDistanceToASample) {
  const Series series = limited_power(100, 150);
  EXPECT_NEAR(between(series, 2, 8).off.sampling_j, 0, 1e-9);
  EXPECT_NEAR(between(series, 2.1, 8).off.sampling_j, 10, 1e-9);
  EXPECT_NEAR(between(series, 2.5, 8).off.sampling_j, 25,
              1e-9);  // at least 50 J and at most 75 J were used before
  EXPECT_NEAR(between(series, 2.5, 8.5).off.sampling_j, 50, 1e-9);
}

TEST(Series, AShortStretchIsOffByNoMoreThanTheMostPowerForItsTime) {
  EXPECT_NEAR(between(limited_power(100, 150), 2.25, 2.26).off.sampling_j, 1, 1e-9);
  EXPECT_NEAR(between(limited_power(100, 400), 2.25, 2.26).off.sampling_j, 3, 1e-9);
}

TEST(Series, WhereTheHighestPowerIsNotKnownItIsTakenFromTheHighestMean) {
  EXPECT_NEAR(between(limited_power(100, 0), 2.25, 2.26).off.sampling_j, 1.5, 1e-9);
}

TEST(Series, ASampleRightAfterAMomentTellsOfItWhateverItsAge) {
  Series series({.update_s = 0.001, .lag_s = 0.001, .peak_w = 150});
  for (const double time_s : {0.0, 1.0, 2.0, 2.0001}) series.add({time_s, 100 * time_s, time_s});
  EXPECT_LT(series.between(1, 2).off.sampling_j, 0.5);
  EXPECT_LT(series.between(1, 1.9999).off.sampling_j, 0.5);
}

TEST(Series, WhereTwoStretchesMeetTheirErrorsCancel) {
  const Series series = limited_power(100, 150);
  const Amount first = between(series, 2, 5.5);
  const Amount second = between(series, 5.5, 9);
  EXPECT_NEAR(first.end_off_j, 25, 1e-9);
  EXPECT_NEAR(second.begin_off_j, 25, 1e-9);
  EXPECT_NEAR(first.begin_off_j + second.end_off_j, between(series, 2, 9).off.sampling_j, 1e-9);
}

// A source of 100 W stands still from the first second to the third.
Series standing_still() {
  Series series({.update_s = 0.001, .lag_s = 0.001, .peak_w = 150});
  for (const double time_s : {0.0, 0.5, 1.0}) series.add({time_s, 100 * time_s, time_s});
  for (const double time_s : {1.5, 2.0, 2.5, 3.0}) series.add({time_s, 100, time_s, time_s - 1});
  return series;
}

TEST(Series, WhileASourceStandsStillItMayHaveUsedTheMost) {
  const Amount amount = standing_still().between(1, 2);
  EXPECT_FALSE(amount.has_gap());
  EXPECT_GE(amount.joules + amount.off.sampling_j, 100);
  EXPECT_LE(amount.joules + amount.off.sampling_j, 151);
}

TEST(Series, WhatIsShownLateWasUsedEvenly) {
  Series series = standing_still();
  series.add({3.1, 310, 3.1});
  EXPECT_NEAR(series.between(1, 2.05).joules, 105, 1e-9);
  EXPECT_GE(series.between(1, 2.05).off.sampling_j, 50);
}

TEST(Series, AReadingAfterAGapDoesNotTellWhatWasUsedBefore) {
  Series series({.update_s = 0.001, .lag_s = 0.001, .peak_w = 150});
  series.add({0, 0, 0});
  series.add({1, 0, 1, 0});
  series.add({3, 0, 1.5});
  const Amount amount = series.between(1.0, 1.2);
  EXPECT_GE(amount.joules + amount.off.sampling_j, 0.2 * 150 - 1e-9);
}

TEST(Series, ASourceIsOffByItsAccuracy) {
  Series series({.update_s = 1, .accuracy = {0.05, "made up"}});
  for (int i = 0; i < 10; ++i) series.add({1.0 * i, 100.0 * i, 1.0 * i});
  EXPECT_NEAR(series.between(2, 4).off.sensor_j, 10, 1e-9);
  EXPECT_TRUE(series.between(2, 4).off.is_bounded);
  EXPECT_FALSE(between(limited_power(100, 150), 2, 4).off.is_bounded);
}

TEST(Series, BehindTheLastPointItMayBeNothingOrTheMost) {
  Series series({.update_s = 1, .peak_w = 150});
  series.add({0, 0, 0});
  series.add({1, 100, 1});
  EXPECT_NEAR(series.between(1, 1.5).off.sampling_j, 50, 1e-9);
}

TEST(Series, UncertaintyIsANumberBehindACounterThatStoodStill) {
  Series series({.update_s = 1, .lag_s = 0.001, .peak_w = 100});
  series.add({0, 0, 0});
  series.add({1, 100, 1});
  series.add({2, 100, 2});
  EXPECT_NEAR(series.between(0, 2.5).off.sampling_j, 50, 1);
}

TEST(AddUp, PowerOfASumIsThatOfItsPartsWhereOneHasAGap) {
  const Amount parts[] = {{100, {0.1, 5}, 0, 1}, {20, {0.2, 2}, 0.75, 0.25}};
  const Amount sum = add_up(parts);
  EXPECT_NEAR(sum.joules, 120, 1e-9);
  EXPECT_NEAR(sum.joules / sum.covered_s, 100 + 80, 1e-9);
  EXPECT_NEAR(sum.covered_s + sum.gap_s, 1, 1e-9);
  EXPECT_NEAR(sum.off.sampling_j, 0.3, 1e-9);
  EXPECT_NEAR(sum.off.sensor_j, 7, 1e-9);
}

TEST(AddUp, NothingIsCoveredIfAPartKnowsNothing) {
  const Amount parts[] = {{100, {}, 0, 1}, {0, {}, 1, 0}};
  EXPECT_EQ(add_up(parts).covered_s, 0);
  EXPECT_EQ(add_up(parts).gap_s, 1);
  EXPECT_EQ(add_up({}).covered_s, 0);
}

// It holds whatever the power was between the readings.
TEST(Series, TheTruthLiesWithinTheUncertaintyOnceTheMostPowerWasShown) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> watts(0, 200), seconds(0.001, 0.02), time(0, 9);
  Series series({.update_s = 0.001});
  std::vector<Point> truth = {{0, 0, 0}, {0.1, 20, 0.1}};
  for (const Point& point : truth) series.add(point);
  double read_s = 0.1;
  while (truth.back().time_s < 10) {
    const double step_s = seconds(random);
    const Point& last = truth.back();
    truth.push_back(
        {last.time_s + step_s, last.joules + step_s * watts(random), last.time_s + step_s});
    if (truth.back().time_s < read_s + 0.1) continue;
    series.add(truth.back());
    read_s = truth.back().time_s;
  }
  const auto at = [&](double time_s) {
    const auto after =
        std::lower_bound(truth.begin() + 1, truth.end(), time_s,
                         [](const Point& point, double one_s) { return point.time_s < one_s; });
    const double share = (time_s - (after - 1)->time_s) / (after->time_s - (after - 1)->time_s);
    return std::lerp((after - 1)->joules, after->joules, share);
  };
  for (int round = 0; round < 1000; ++round) {
    const double from_s = time(random);
    const double to_s = from_s + seconds(random) * static_cast<double>(1 + random() % 20);
    const Amount amount = series.between(from_s, to_s);
    EXPECT_NEAR(amount.joules, at(to_s) - at(from_s), amount.off.sampling_j + 1e-9);
  }
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
