#include "model/levels.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "model/one_level.hpp"

namespace diapause::model {
namespace {

// The columns are number, blocked, behind, slowed, restart, downtime and rate.
const std::vector<Level> kFour = {{1, 2, 0, 0, 3, 1, 1 / 5000.},
                                  {2, 5, 0, 0, 8, 10, 1 / 20000.},
                                  {3, 9, 0, 0, 20, 10, 1 / 90000.},
                                  {4, 60, 0, 0, 80, 60, 1 / 400000.}};

TEST(Levels, OneLevelIsTheClosedForm) {
  const OneLevel job{5000, 40, 70, 15};
  for (const double work_s : {1.0, 500.0, 20000.0}) {
    const Cost cost = cost_of({{1, 40, 0, 0, 70, 15, 1 / 5000.}}, {work_s, {1}});
    const Times expected = expected_times(job, work_s);
    EXPECT_NEAR(cost.times.computing_s / expected.computing_s, 1, 1e-10);
    EXPECT_NEAR(cost.times.checkpointing_s / expected.checkpointing_s, 1, 1e-10);
    EXPECT_NEAR(cost.times.restarting_s / expected.restarting_s, 1, 1e-10);
    EXPECT_NEAR(cost.times.down_s / expected.down_s, 1, 1e-10);
  }
}

TEST(Levels, AFailureBeforeACheckpointHoldsGoesBackToTheOneBefore) {
  // This is computed by hand: from the moment one is durable to the next, the first attempt takes w
  // + b + s d, and each later one w + b + d.
  const double rate = 1 / 3000.;
  const Level level{1, 20, 200, 0.1, 50, 10, rate};
  const double work_s = 900;
  const double first_s = work_s + 20 + 0.1 * 200;
  const double later_s = work_s + 20 + 200;
  const double recovery_s = std::exp(rate * 50) * 10 + std::expm1(rate * 50) / rate;
  const double after_failure_s = std::expm1(rate * later_s) * (1 / rate + recovery_s) + recovery_s;
  const double expected_s = -std::expm1(-rate * first_s) * (1 / rate + after_failure_s);
  EXPECT_NEAR(cost_of({level}, {work_s, {1}}).times.wall_s() / expected_s, 1, 1e-10);
}

TEST(Levels, WithoutFailuresTheCostIsThatOfTheCheckpoints) {
  std::vector<Level> levels = kFour;
  for (Level& level : levels) level.failures_per_s = 0;
  const Cost cost = cost_of(levels, {100, {1, 3, 2, 4}});
  EXPECT_DOUBLE_EQ(cost.work_s, 2400);
  EXPECT_NEAR(cost.times.computing_s, 2400, 1e-9);
  // Of 24 checkpoints one is of level 4, three of level 3, four of level 2 and sixteen of level 1.
  EXPECT_NEAR(cost.times.checkpointing_s, 60 + 3 * 9 + 4 * 5 + 16 * 2, 1e-9);
}

TEST(Levels, LevelsThatCostTheSameAndFailAlikeAreOne) {
  const Level half{1, 30, 0, 0, 40, 5, 1 / 8000.};
  Level whole = half;
  whole.failures_per_s = 2 / 8000.;
  const double one = cost_of({whole}, {700, {1}}).wall_per_work();
  // Every checkpoint has both levels, so failures of both classes go back equally far.
  EXPECT_NEAR(cost_of({half, half}, {700, {1, 1}}).wall_per_work() / one, 1, 1e-12);
  EXPECT_GT(cost_of({half, half}, {700, {1, 2}}).wall_per_work(), one);
}

TEST(Levels, ALevelWithoutFailuresOnlyCostsItsCheckpoints) {
  const Level fails{2, 30, 0, 0, 40, 5, 1 / 8000.};
  const Level never{1, 0, 0, 0, 0, 0, 0};
  const double alone = cost_of({fails}, {900, {1}}).wall_per_work();
  EXPECT_NEAR(cost_of({never, fails}, {300, {1, 3}}).wall_per_work() / alone, 1, 1e-12);
}

TEST(Levels, FractionsOfCountsLieBetweenWholeOnes) {
  const double two = cost_of(kFour, {400, {1, 2, 3, 3}}).wall_per_work();
  const double middle = cost_of(kFour, {400, {1, 2.5, 3, 3}}).wall_per_work();
  const double three = cost_of(kFour, {400, {1, 3, 3, 3}}).wall_per_work();
  EXPECT_LT(std::min(two, three) * 0.999, middle);
  EXPECT_GT(std::max(two, three), middle);
}

TEST(Levels, WhereNothingIsEverDoneTheCostIsInfinite) {
  const Cost cost = cost_of({{1, 1e6, 0, 0, 1, 0, 1}}, {1, {1}});
  EXPECT_FALSE(std::isfinite(cost.wall_per_work()));
}

TEST(Levels, FailuresOfAMissingLevelGoToTheNextDeeperOne) {
  const auto kept = only_present(kFour, {true, false, false, true});
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_DOUBLE_EQ(kept[0].failures_per_s, 1 / 5000.);
  EXPECT_DOUBLE_EQ(kept[1].failures_per_s, 1 / 20000. + 1 / 90000. + 1 / 400000.);
  EXPECT_EQ(kept[1].number, 4);
}

TEST(Levels, EnergyIsTimesByTheirPowers) {
  const Times times{10, 1, 2, 3, 4, 5};
  EXPECT_DOUBLE_EQ(times.joules({100, 50, 40, 30, 7}), 1100 + 100 + 120 + 120 + 35);
  EXPECT_DOUBLE_EQ(times.wall_s(), 20);
}

}  // namespace
}  // namespace diapause::model
