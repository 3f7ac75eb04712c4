#include "cli/energy_comparison.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace diapause::cli {
namespace {

// Returns a metered job, with what it used and what samples and the source may be off.
EnergySummary job_of(double seconds, double joules, double sampling_j,
                     std::optional<double> sensor_j, const std::string& source = "rapl 0") {
  EnergySummary energy;
  energy.seconds = energy.covered_s = seconds;
  energy.total = "package";
  energy.hosts = {"a1"};
  energy.sources = {{"package", source, "measured"}};
  energy.whole.sum = joules;
  energy.whole.known = energy.whole.doubted = 1;
  energy.whole.bounded = sensor_j ? 1 : 0;
  energy.whole.sampling = sampling_j;
  energy.whole.sensor = sensor_j.value_or(0);
  return energy;
}

Change energy_change(const EnergySummary& job, const std::vector<EnergySummary>& baselines) {
  return *compare(job, baselines).joules_change;
}

TEST(EnergyComparison, WhatOneSourceIsOffCancels) {
  const Change change = energy_change(job_of(10, 1010, 10.1, 50), {job_of(10, 1000, 20, 50)});
  EXPECT_NEAR(change.percent, 1, 1e-9);
  EXPECT_NEAR(*change.off, (0.01 + 0.02) * 1.01 * 100, 1e-9);
  EXPECT_EQ(change.is_told_apart(), false);
}

TEST(EnergyComparison, WhatTwoSourcesAreOffAddsUp) {
  const Change change =
      energy_change(job_of(10, 1100, 0, 55), {job_of(10, 1000, 0, 100, "hwmon node")});
  EXPECT_NEAR(*change.off, (0.05 + 0.1) * 1.1 * 100, 1e-9);
}

TEST(EnergyComparison, EstimatesCompareIfTheyAreOfOneSource) {
  EXPECT_NEAR(
      *energy_change(job_of(10, 1000, 10, std::nullopt), {job_of(10, 1000, 0, std::nullopt)}).off,
      1, 1e-9);
  EXPECT_EQ(
      energy_change(job_of(10, 1000, 10, std::nullopt), {job_of(10, 1000, 0, 5, "hwmon node")}).off,
      std::nullopt);
}

TEST(EnergyComparison, SourcesOfTheSameNameOnOtherMachinesAreNotOffAlike) {
  EnergySummary elsewhere = job_of(10, 1000, 0, 100);
  for (const std::set<std::string>& hosts :
       {std::set<std::string>{"b2"}, {"a1", "b2"}, {""}, {"", "a1"}, {}}) {
    elsewhere.hosts = hosts;
    EXPECT_NEAR(*energy_change(job_of(10, 1100, 0, 55), {elsewhere}).off, (0.05 + 0.1) * 1.1 * 100,
                1e-9);
  }
  elsewhere.hosts = {""};
  EXPECT_NEAR(*energy_change(elsewhere, {elsewhere}).off, 20, 1e-9);  // nobody knows where
}

TEST(EnergyComparison, ARunOfEachSaysNothingOfHowRunsDiffer) {
  const Comparison all = compare(job_of(11, 1000, 0, 5), std::vector{job_of(10, 1000, 0, 5)});
  EXPECT_NEAR(all.runtime_change->percent, 10, 1e-9);
  EXPECT_EQ(all.runtime_change->is_told_apart(), std::nullopt);
}

// The runs of 990, 1000 and 1010 J have a standard deviation of 10 J. The bound is that times t =
// 4.30, times the root of 4/3.
TEST(EnergyComparison, OneMoreRunOfTheBaselineIsNotToldApart) {
  const std::vector baselines = {job_of(9.9, 990, 0, 5), job_of(10, 1000, 0, 5),
                                 job_of(10.1, 1010, 0, 5)};
  const double scatter = 4.30 * 10 * std::sqrt(4. / 3);
  const Change near = energy_change(job_of(10, 1000 + scatter - 1, 0, 5), baselines);
  EXPECT_NEAR(*near.off, scatter / 10 * (1000 + scatter - 1) / 1000, 1e-9);
  EXPECT_EQ(near.is_told_apart(), false);
  EXPECT_EQ(energy_change(job_of(10, 1000 + 1.1 * scatter, 0, 5), baselines).is_told_apart(), true);
  EXPECT_EQ(compare(job_of(10.2, 1, 0, 5), baselines).runtime_change->is_told_apart(), false);
}

TEST(EnergyComparison, SamplesMayMissMoreThanRunsHappenToDiffer) {
  const std::vector baselines = {job_of(10, 1000, 40, 5), job_of(10, 1000, 40, 5)};
  EXPECT_NEAR(*energy_change(job_of(10, 1000, 40, 5), baselines).off, 8, 1e-9);
}

// Half of the lines tell their energy.
TEST(EnergyComparison, EnergyOfWhichAPartIsMissingIsNotCompared) {
  EnergySummary partial = job_of(10, 500, 1, 5);
  partial.whole.unknown = 1;
  const EnergySummary whole = job_of(10, 1000, 1, 5);
  for (const Comparison& all :
       {compare(partial, std::vector{whole}), compare(whole, std::vector{whole, partial})}) {
    EXPECT_TRUE(all.runtime_change);
    EXPECT_FALSE(all.watts_change);
    EXPECT_FALSE(all.joules_change);
  }
}

// Half of the job is a gap, and the power there may be up to twice the mean.
TEST(EnergyComparison, WhatWasUsedInGapsIsInTheError) {
  EnergySummary with_gap = job_of(10, 500, 0, 5);
  with_gap.gap_s = with_gap.covered_s = 5;
  const Comparison all = compare(with_gap, std::vector{job_of(10, 1000, 0, 5)});
  EXPECT_NEAR(*all.joules_change->off, 2 * 0.5 * 100, 1e-9);
  EXPECT_EQ(all.joules_change->is_told_apart(), false);
  EXPECT_NEAR(*all.watts_change->off, 0, 1e-9);
  with_gap.whole.doubted = 0;
  EXPECT_FALSE(compare(with_gap, std::vector{job_of(10, 1000, 0, 5)}).joules_change);
}

TEST(EnergyComparison, WithoutAMeterThereIsTimeAlone) {
  EnergySummary bare;
  bare.seconds = 12;
  const Comparison all = compare(bare, std::vector{job_of(10, 1000, 0, 5)});
  EXPECT_NEAR(all.runtime_change->percent, 20, 1e-9);
  EXPECT_FALSE(all.joules_change);
  EXPECT_FALSE(compare(job_of(10, 1000, 0, 5), std::vector{bare}).joules_change);
}

}  // namespace
}  // namespace diapause::cli
