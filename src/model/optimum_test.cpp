#include "model/optimum.hpp"

#include <gtest/gtest.h>

#include "model/one_level.hpp"

namespace diapause::model {
namespace {

const std::vector<Level> kJobLevels = {{1, 2, 0, 0, 3, 1, 1 / 5000.},
                                       {2, 5, 0, 0, 8, 10, 1 / 20000.},
                                       {3, 9, 0, 0, 20, 10, 1 / 90000.},
                                       {4, 60, 0, 0, 80, 60, 1 / 400000.}};

TEST(Optimum, OfOneLevelIsTheClosedForm) {
  const OneLevel job{5000, 40, 70, 15};
  const std::vector<Level> levels = {{1, 40, 0, 0, 70, 15, 1 / 5000.}};
  const Powers powers{300, 120, 200, 80, 0};
  EXPECT_NEAR(best_plan(levels, powers, Goal::time)->pattern.work_s / time_optimal_work_s(job), 1,
              1e-4);
  EXPECT_NEAR(
      best_plan(levels, powers, Goal::energy)->pattern.work_s / energy_optimal_work_s(job, powers),
      1, 1e-4);
}

TEST(Optimum, NoPatternOfAGridIsBetter) {
  const auto plan = best_plan(kJobLevels, {}, Goal::time);
  ASSERT_TRUE(plan);
  double best = 1e9;
  for (double work_s = 60; work_s < 1000; work_s *= 1.03) {
    for (int n2 = 1; n2 < 7; ++n2) {
      for (int n3 = 1; n3 < 7; ++n3) {
        for (int n4 = 1; n4 < 16; ++n4) {
          const Pattern pattern{work_s, {1, 1. * n2, 1. * n3, 1. * n4}};
          best = std::min(best, cost_of(kJobLevels, pattern).wall_per_work());
        }
      }
    }
  }
  EXPECT_LE(plan->wall_per_work(), best);
  EXPECT_NEAR(plan->wall_per_work() / best, 1, 1e-4);
}

TEST(Optimum, ALevelThatIsNotWorthItIsAlwaysADeeperOne) {
  // Level 1 saves one second of five and is hardly ever sufficient.
  const std::vector<Level> levels = {{1, 4, 0, 0, 4, 0, 1e-9}, {2, 5, 0, 0, 5, 0, 1e-4}};
  EXPECT_EQ(best_plan(levels, {}, Goal::time)->pattern.every[1], 1);
}

TEST(Optimum, LevelsThatNeverFailAreLeftOut) {
  std::vector<Level> levels = kJobLevels;
  levels[2].failures_per_s = 0;
  levels[3].failures_per_s = 0;
  const auto plan = best_plan(levels, {}, Goal::time);
  ASSERT_EQ(plan->levels.size(), 2u);
  EXPECT_EQ(plan->levels[1].number, 2);
}

TEST(Optimum, WithoutFailuresThereIsNone) {
  EXPECT_FALSE(best_plan({{1, 2, 0, 0, 3, 1, 0}}, {}, Goal::time));
  EXPECT_FALSE(best_plan({}, {}, Goal::time));
}

TEST(Optimum, ACheckpointHoldsBeforeTheNextOneOfItsLevelBegins) {
  const std::vector<Level> levels = {{1, 0.1, 0, 0, 1, 0, 1 / 1000.},
                                     {4, 0.2, 600, 0.02, 60, 0, 1 / 2000.}};
  const auto plan = best_plan(levels, {}, Goal::time);
  EXPECT_GE(plan->pattern.period_work_s(1), 0.98 * 600 * (1 - 1e-9));
}

TEST(Optimum, CheaperEnergyIsBoughtWithNoMoreTimeThanAllowed) {
  const Powers powers{300, 30, 300, 100, 0};
  std::vector<Level> levels = kJobLevels;
  levels[0].blocked_s = 60;
  levels[1].blocked_s = 90;
  levels[2].blocked_s = 150;
  levels[3].blocked_s = 900;
  const auto fast = best_plan(levels, powers, Goal::time);
  const auto cheap = best_plan(levels, powers, Goal::energy);
  const double longer = cheap->wall_per_work() / fast->wall_per_work() - 1;
  ASSERT_GT(longer, 0.005);
  const auto mixed = best_plan_within(levels, powers, longer / 2);
  EXPECT_LE(mixed->wall_per_work(), fast->wall_per_work() * (1 + longer / 2));
  EXPECT_LT(mixed->cost.watts_per_work(powers), fast->cost.watts_per_work(powers));
  EXPECT_GT(mixed->cost.watts_per_work(powers), cheap->cost.watts_per_work(powers));
  EXPECT_NEAR(best_plan_within(levels, powers, 1)->wall_per_work(), cheap->wall_per_work(), 1e-12);
}

TEST(Optimum, WherePatternsDoNotHelpThereIsStillAPlan) {
  const auto plan = best_plan({{1, 1e6, 0, 0, 1, 0, 1}, {2, 1e6, 0, 0, 1, 0, 1}}, {}, Goal::time);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->pattern.every.size(), 2u);
}

}  // namespace
}  // namespace diapause::model
