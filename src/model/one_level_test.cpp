#include "model/one_level.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "model/lambert.hpp"
#include "model/search.hpp"

namespace diapause::model {
namespace {

constexpr double kHour_s = 3600;
const OneLevel kJob{24 * kHour_s, 600, 900, 120};

TEST(Lambert, SolvesItsEquation) {
  for (const double z : {-0.3678794, -0.3, -1e-9, 0.0, 1e-6, 0.5, 2.718281828459045, 1e3, 1e30}) {
    const double w = lambert_w0(z);
    EXPECT_NEAR(w * std::exp(w), z, 1e-12 * std::max(1.0, std::abs(z))) << z;
  }
  EXPECT_NEAR(lambert_w0(1), 0.56714329040978387300, 1e-15);
  EXPECT_TRUE(std::isnan(lambert_w0(-0.4)));
}

TEST(Lambert, KeepsItsPrecisionBesideTheBranchPoint) {
  // x = sqrt(2 y) - 2 y / 3 + 11 sqrt(2 y)^3 / 72 - ...
  for (const double y : {1e-30, 1e-16, 1e-10, 1e-8}) {
    const double p = std::sqrt(2 * y);
    EXPECT_NEAR(one_plus_lambert_w0(y) / (p - p * p / 3 + 11 * p * p * p / 72), 1, 1e-12) << y;
  }
}

TEST(OneLevel, PartsAddUpToThePublishedExpectation) {
  for (const double work_s : {10.0, 3600.0, 100000.0}) {
    const double rate = 1 / kJob.mtbf_s;
    const double published = (1 / rate + kJob.downtime_s) * std::exp(rate * kJob.restart_s) *
                             std::expm1(rate * (work_s + kJob.checkpoint_s));
    EXPECT_NEAR(expected_times(kJob, work_s).wall_s() / published, 1, 1e-12);
  }
}

TEST(OneLevel, WithoutFailuresOnlyTheCheckpointIsAdded) {
  const Times times = expected_times({1e15, 600, 900, 120}, 3600);
  EXPECT_NEAR(times.computing_s, 3600, 1e-5);
  EXPECT_NEAR(times.checkpointing_s, 600, 1e-6);
  EXPECT_NEAR(times.restarting_s + times.down_s, 0, 1e-5);
}

TEST(OneLevel, TheClosedFormIsWhereASearchFindsTheLeastTime) {
  for (const double checkpoint_s : {0.01, 10.0, 600.0, 86400.0, 1e6}) {
    const OneLevel job{kJob.mtbf_s, checkpoint_s, 900, 120};
    const auto per_work = [&](double work_s) {
      return expected_times(job, work_s).wall_s() / work_s;
    };
    // A function is flat around its minimum: the place is known only to the square root of the
    // precision of the values.
    EXPECT_NEAR(least_place(per_work, 1, 1e7) / time_optimal_work_s(job), 1, 1e-4) << checkpoint_s;
  }
}

TEST(OneLevel, TheClosedFormIsWhereASearchFindsTheLeastEnergy) {
  for (const double checkpoint_w : {20.0, 150.0, 400.0, 4000.0}) {
    const Powers powers{300, checkpoint_w, 200, 80, 0};
    const auto per_work = [&](double work_s) {
      return expected_times(kJob, work_s).joules(powers) / work_s;
    };
    EXPECT_NEAR(least_place(per_work, 1, 1e7) / energy_optimal_work_s(kJob, powers), 1, 1e-4)
        << checkpoint_w;
  }
}

TEST(OneLevel, EqualPowersMakeTheLeastEnergyTheLeastTime) {
  const Powers powers{300, 300, 300, 300, 0};
  EXPECT_NEAR(energy_optimal_work_s(kJob, powers) / time_optimal_work_s(kJob), 1, 1e-12);
}

TEST(OneLevel, CheckpointsThatDrawLessAreTakenMoreOften) {
  EXPECT_LT(energy_optimal_work_s(kJob, {300, 100, 300, 300, 0}), time_optimal_work_s(kJob));
  EXPECT_GT(energy_optimal_work_s(kJob, {300, 500, 300, 300, 0}), time_optimal_work_s(kJob));
}

TEST(OneLevel, TheOptimumKnowsNothingOfRestarts) {
  EXPECT_EQ(time_optimal_work_s(kJob), time_optimal_work_s({kJob.mtbf_s, kJob.checkpoint_s, 0, 0}));
}

TEST(OneLevel, ApproximationsAreGoodForShortCheckpointsAndBadForLongOnes) {
  const OneLevel short_one{24 * kHour_s, 1, 0, 0};
  EXPECT_NEAR(young_work_s(short_one) / time_optimal_work_s(short_one), 1, 0.003);
  EXPECT_NEAR(daly_work_s(short_one) / time_optimal_work_s(short_one), 1, 1e-6);
  const OneLevel long_one{kHour_s, 1800, 0, 0};
  EXPECT_NEAR(young_work_s(long_one) / time_optimal_work_s(long_one), 1.43, 0.01);
  EXPECT_NEAR(daly_work_s(long_one) / time_optimal_work_s(long_one), 1, 0.01);
  EXPECT_GT(time_excess(long_one, young_work_s(long_one)), 0.005);
  EXPECT_NEAR(time_excess(long_one, time_optimal_work_s(long_one)), 0, 1e-12);
}

TEST(OneLevel, DalysIntervalIsTheMeanTimeWhereCheckpointsTakeTwiceThat) {
  EXPECT_EQ(daly_work_s({100, 200, 0, 0}), 100);
  EXPECT_NEAR(daly_work_s({100, 199.999, 0, 0}), 100 * 2 * (1 + 1 / 3. + 1 / 9.) - 200, 0.01);
}

}  // namespace
}  // namespace diapause::model
