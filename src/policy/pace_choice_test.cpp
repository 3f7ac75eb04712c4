#include "policy/pace_choice.hpp"

#include <gmock/gmock.h>

#include "policy/schedule.hpp"

namespace diapause::policy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

config::AutoSchedule goal(config::ScheduleGoal goal, double bound_percent = 2) {
  return {true, goal, bound_percent};
}

// Checkpoints of level 4 become durable long after they are taken.
const PaceInputs kJob{{{1, 2, 0, 0, 3, 0, 1 / 5000.}, {4, 2, 600, 0.05, 600, 60, 1 / 100000.}},
                      {300, 120, 120, 100, 60}};

PaceInputs with_blocked(PaceInputs inputs, std::size_t index, double seconds) {
  inputs.levels[index].blocked_s = seconds;
  return inputs;
}

TEST(PaceChoice, IsTheOptimumOfWhatItIsTold) {
  PaceChoice choice(goal(config::ScheduleGoal::time));
  const auto decision = choice.consider(kJob);
  ASSERT_TRUE(decision);
  const auto best = model::best_plan(kJob.levels, kJob.powers, model::Goal::time);
  EXPECT_EQ(decision->pace.number, 1u);
  EXPECT_EQ(decision->pace.every_s, best->pattern.work_s);
  EXPECT_THAT(decision->pace.one_in, ElementsAre(0, 1, 0, 0, best->pattern.every[1]));
}

TEST(PaceChoice, GoesOnWhereLittleHasChanged) {
  PaceChoice choice(goal(config::ScheduleGoal::time));
  ASSERT_TRUE(choice.consider(kJob));
  EXPECT_FALSE(choice.consider(kJob));
  EXPECT_FALSE(choice.consider(with_blocked(kJob, 0, 2.1)));
}

// An interval that is off by a fifth costs next to nothing.
TEST(PaceChoice, GoesOnWhereAChangeWouldSaveLittle) {
  PaceChoice choice(goal(config::ScheduleGoal::time));
  ASSERT_TRUE(choice.consider(kJob));
  EXPECT_FALSE(choice.consider(with_blocked(kJob, 0, 2.5)));
}

TEST(PaceChoice, ChangesWithItsReasonAndWhatThatSaves) {
  PaceChoice choice(goal(config::ScheduleGoal::time));
  const auto first = choice.consider(kJob);
  const auto second = choice.consider(with_blocked(kJob, 0, 20));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->pace.number, 2u);
  EXPECT_GT(second->pace.every_s, 2 * first->pace.every_s);
  EXPECT_THAT(second->reason, HasSubstr("level 1 blocks: 20 s, before 2"));
  EXPECT_THAT(second->reason, Not(HasSubstr("level 4")));
  const auto levels = with_blocked(kJob, 0, 20).levels;
  const double before = model::cost_of(levels, first->plan.pattern).wall_per_work();
  EXPECT_NEAR(second->saves, 1 - second->plan.wall_per_work() / before, 1e-12);
  EXPECT_GT(second->saves, 0);
}

// Many small changes add up to a large one.
TEST(PaceChoice, ComparesWithWhatItLastThoughtAbout) {
  PaceChoice choice(goal(config::ScheduleGoal::time));
  ASSERT_TRUE(choice.consider(kJob));
  int changes = 0;
  double blocked_s = 2;
  for (int step = 0; step < 60; ++step)
    changes += choice.consider(with_blocked(kJob, 0, blocked_s *= 1.05)) ? 1 : 0;
  EXPECT_GE(changes, 2);
  EXPECT_LE(changes, 10);
}

TEST(PaceChoice, DoesWithoutALevelThatIsGoneAndTakesItAgain) {
  PaceChoice choice(goal(config::ScheduleGoal::time));
  ASSERT_TRUE(choice.consider(kJob));
  PaceInputs without = kJob;
  without.levels.pop_back();
  const auto decision = choice.consider(without);
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->pace.one_in[4], 0u);
  EXPECT_THAT(decision->reason, HasSubstr("levels that can be taken are now 1"));
  const auto again = choice.consider(kJob);
  ASSERT_TRUE(again);
  EXPECT_GT(again->pace.one_in[4], 0u);
}

TEST(PaceChoice, ByEnergyTakesFewerCheckpointsWhereTheyDrawMoreThanComputing) {
  PaceInputs dear = kJob;
  dear.powers.checkpoint_w = 900;
  const auto by_time = PaceChoice(goal(config::ScheduleGoal::time)).consider(dear);
  const auto by_energy = PaceChoice(goal(config::ScheduleGoal::energy)).consider(dear);
  EXPECT_GT(by_energy->pace.every_s, 1.3 * by_time->pace.every_s);
}

TEST(PaceChoice, MixedStaysWithinItsBoundOfTheShortestTime) {
  PaceInputs dear = kJob;
  dear.powers.checkpoint_w = 9000;
  const auto shortest = PaceChoice(goal(config::ScheduleGoal::time)).consider(dear);
  const auto cheapest = PaceChoice(goal(config::ScheduleGoal::energy)).consider(dear);
  const auto mixed = PaceChoice(goal(config::ScheduleGoal::mixed, 0.5)).consider(dear);
  EXPECT_GT(cheapest->plan.wall_per_work(), 1.005 * shortest->plan.wall_per_work());
  EXPECT_LE(mixed->plan.wall_per_work(), 1.005 * shortest->plan.wall_per_work());
  EXPECT_LT(mixed->plan.cost.watts_per_work(dear.powers),
            shortest->plan.cost.watts_per_work(dear.powers));
}

TEST(PaceChoice, HasNoneWhereNothingFails) {
  PaceInputs sound = kJob;
  for (model::Level& level : sound.levels) level.failures_per_s = 0;
  EXPECT_FALSE(PaceChoice(goal(config::ScheduleGoal::time)).consider(sound));
}

TEST(FailureRates, AreOfAllNodesAndLeaveNoJobWithoutLevel4) {
  config::FailureSettings settings;
  settings.node_mtbf_s = 1000;
  EXPECT_THAT(failure_rates(settings, 10), ElementsAre(0, 0, 0.01, 0, 0.001));
  settings = {};
  settings.mtbf_s = {0, 10, 100, 0, 1000};
  EXPECT_THAT(failure_rates(settings, 10), ElementsAre(0, 0.1, 0.01, 0, 0.001));
}

// A program with snapshot calls of one second, answered as by the engine.
struct PacedProgram {
  Schedule schedule;
  double now_s = 0;
  std::vector<int> levels;
  std::vector<double> at_s;

  explicit PacedProgram() : schedule(settings()) {}
  static config::Settings settings() {
    config::Settings settings;
    settings.auto_schedule.is_on = true;
    return settings;
  }
  void run_until(double end_s) {
    for (; now_s < end_s; now_s += 1) {
      const int level = schedule.tick() ? schedule.decide(now_s) : schedule.calls_due();
      if (level == 0) continue;
      levels.push_back(level);
      at_s.push_back(now_s);
      schedule.taken(level, now_s += 3);
    }
  }
};

TEST(PacedSchedule, TakesNothingBeforeThereIsAPace) {
  PacedProgram program;
  EXPECT_TRUE(program.schedule.wants_pace());
  program.run_until(5000);
  EXPECT_TRUE(program.levels.empty());
}

TEST(PacedSchedule, TakesEachLevelInItsTurn) {
  PacedProgram program;
  program.schedule.follow({1, 100, {0, 1, 0, 3, 6}, {}});
  EXPECT_FALSE(program.schedule.wants_pace());
  program.run_until(1300);
  EXPECT_THAT(program.levels, ElementsAre(1, 1, 3, 1, 1, 4, 1, 1, 3, 1, 1, 4));
  for (std::size_t i = 1; i < program.at_s.size(); ++i)
    EXPECT_NEAR(program.at_s[i] - program.at_s[i - 1], 103, 2);
}

TEST(PacedSchedule, GoesOnCountingWhereTheStartBeforeStopped) {
  PacedProgram program;
  program.schedule.follow({1, 100, {0, 1, 0, 3, 6}, {0, 0, 0, 1, 4}});
  program.run_until(700);
  EXPECT_THAT(program.levels, ElementsAre(1, 4, 1, 1, 3, 1));
}

TEST(PacedSchedule, CountsOnWhenThePaceChanges) {
  PacedProgram program;
  program.schedule.follow({1, 100, {0, 1, 0, 0, 6}, {}});
  program.run_until(450);
  program.schedule.follow({2, 300, {0, 1, 0, 0, 6}, {}});
  program.run_until(2000);
  EXPECT_THAT(program.levels, ElementsAre(1, 1, 1, 1, 1, 4, 1, 1, 1));
  EXPECT_NEAR(program.at_s[5] - program.at_s[4], 303, 3);
}

TEST(PacedSchedule, LeavesAFixedScheduleAlone) {
  config::Settings settings;
  settings.level(2).interval.calls = 5;
  Schedule schedule(settings);
  schedule.follow({1, 0.001, {0, 1, 0, 0, 0}, {}});
  for (int call = 1; call < 5; ++call) {
    EXPECT_FALSE(schedule.tick());
    EXPECT_EQ(schedule.calls_due(), 0);
  }
}

}  // namespace
}  // namespace diapause::policy
