#include "simulate/simulation.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "model/one_level.hpp"
#include "model/optimum.hpp"
#include "simulate/statistics.hpp"

namespace diapause::simulate {
namespace {

using model::FailureLaw;
using model::LawKind;

// Returns a machine with a class for each level that fails as the formulas assume: at a rate for
// the whole job, and survived by its level.
Machine machine_of(const std::vector<model::Level>& levels) {
  Machine machine;
  for (const model::Level& level : levels) {
    FailureClass one;
    one.name = "class " + std::to_string(level.number);
    one.law.mean_s = 1 / level.failures_per_s;
    one.least_level = level.number;
    machine.classes.push_back(one);
  }
  return machine;
}

// Returns the wall time per useful work in many replicas of a job that does much work.
Estimate wall_per_work(const Job& job, const Machine& machine, int replicas) {
  std::vector<double> values;
  for (int i = 0; i < replicas; ++i) {
    const History run = simulate(job, machine, static_cast<std::uint64_t>(i) + 1);
    values.push_back(run.wall_s / run.work_s);
  }
  return estimate(values);
}

void expect_agreement(const Job& job) {
  ASSERT_TRUE(check(job, machine_of(job.levels)));
  const double expected = model::cost_of(job.levels, job.pattern).wall_per_work();
  const Estimate played = wall_per_work(job, machine_of(job.levels), 16);
  EXPECT_NEAR(played.mean / expected, 1, 0.005) << "+- " << played.half_width / expected;
}

Job one_level(double restart_s, double downtime_s) {
  Job job;
  job.levels = {{1, 40, 0, 0, restart_s, downtime_s, 1 / 5000.}};
  job.pattern = {model::time_optimal_work_s({5000, 40, restart_s, downtime_s}), {1}};
  job.work_s = job.pattern.work_s * 100000;
  return job;
}

const std::vector<model::Level> kLevels = {{1, 2, 0, 0, 3, 1, 1 / 5000.},
                                           {2, 5, 0, 0, 8, 10, 1 / 20000.},
                                           {3, 9, 0, 0, 20, 10, 1 / 90000.},
                                           {4, 60, 0, 0, 80, 60, 1 / 400000.}};

TEST(Simulation, OneLevelTakesTheExpectedTime) {
  for (const double restart_s : {0.0, 900.0}) {
    for (const double downtime_s : {0.0, 300.0}) expect_agreement(one_level(restart_s, downtime_s));
  }
}

TEST(Simulation, TimesOfEachKindAreThoseExpected) {
  Job job = one_level(900, 300);
  job.work_s *= 5;
  const History run = simulate(job, machine_of(job.levels), 3);
  const model::Times expected = model::cost_of(job.levels, job.pattern).times;
  const double segments = run.work_s / job.pattern.work_s;
  const auto seconds = [&](Activity activity) {
    return run.seconds[static_cast<std::size_t>(activity)] / segments;
  };
  EXPECT_NEAR(seconds(Activity::compute) / expected.computing_s, 1, 0.01);
  EXPECT_NEAR(seconds(Activity::checkpoint) / expected.checkpointing_s, 1, 0.01);
  EXPECT_NEAR(seconds(Activity::restart) / expected.restarting_s, 1, 0.02);
  EXPECT_NEAR(seconds(Activity::down) / expected.down_s, 1, 0.02);
  EXPECT_NEAR(run.rework_s / segments / (expected.computing_s - job.pattern.work_s), 1, 0.02);
}

TEST(Simulation, SeveralLevelsTakeTheExpectedTime) {
  Job job;
  job.levels = kLevels;
  job.pattern = model::best_plan(kLevels, {}, model::Goal::time)->pattern;
  job.work_s = job.pattern.work_of_all_s() * 3000;
  expect_agreement(job);
}

TEST(Simulation, CheckpointsThatHoldLaterTakeTheExpectedTime) {
  Job job;
  job.levels = {{4, 10, 400, 0.1, 60, 5, 1 / 4000.}};
  job.pattern = {900, {1}};
  job.work_s = 900 * 100000;
  expect_agreement(job);
}

TEST(Simulation, SeveralLevelsThatHoldLaterTakeTheExpectedTime) {
  Job job;
  job.levels = {{1, 2, 0, 0, 3, 1, 1 / 1500.},
                {2, 4, 30, 0.1, 8, 10, 1 / 9000.},
                {4, 10, 900, 0.05, 80, 60, 1 / 40000.}};
  job.pattern = {90, {1, 3, 12}};
  job.work_s = job.pattern.work_of_all_s() * 4000;
  expect_agreement(job);
}

TEST(Simulation, TheOptimumByFormulaIsTheBestPlayed) {
  Job job;
  job.levels = kLevels;
  const model::Plan plan = *model::best_plan(kLevels, {}, model::Goal::time);
  job.work_s = plan.pattern.work_of_all_s() * 1000;
  job.pattern = plan.pattern;
  const double best = wall_per_work(job, machine_of(kLevels), 8).mean;
  for (const double factor : {0.4, 2.5}) {
    job.pattern.work_s = plan.pattern.work_s * factor;
    EXPECT_GT(wall_per_work(job, machine_of(kLevels), 8).mean, best);
  }
}

TEST(Simulation, TheSameSeedGivesTheSameRun) {
  const Job job = one_level(10, 10);
  const History one = simulate(job, machine_of(job.levels), 7, 50);
  const History same = simulate(job, machine_of(job.levels), 7, 50);
  EXPECT_EQ(one.wall_s, same.wall_s);
  ASSERT_EQ(one.events.size(), 50u);
  EXPECT_EQ(one.events.back().end_s, same.events.back().end_s);
  EXPECT_NE(one.wall_s, simulate(job, machine_of(job.levels), 8).wall_s);
}

TEST(Simulation, AllSecondsAreAccountedFor) {
  Job job;
  job.levels = {{1, 2, 0, 0, 3, 1, 0}, {4, 10, 100, 0.2, 60, 5, 0}};
  job.pattern = {300, {1, 5}};
  job.horizon_s = 3e6;
  job.powers = {100, 50, 70, 20, 5};
  Machine machine;
  machine.placement = {64, 4, 1};
  machine.classes = {
      {"node", Takes::nodes, 1, {LawKind::weibull, 64 * 40000., 0.7}, 0, 1, 20000, 0}};
  machine.spares = 1;
  machine.allocation_s = 86400;
  machine.queue_s = 3600;
  machine.contention = {2000, 500, 0.5};
  ASSERT_TRUE(check(job, machine));
  const History run = simulate(job, machine, 5);
  double sum_s = 0;
  for (const double seconds : run.seconds) sum_s += seconds;
  EXPECT_NEAR(sum_s, run.wall_s, 1e-3);
  EXPECT_NEAR(run.wall_s, 3e6, 1e-6);
  const double computed_s = run.seconds[0];
  EXPECT_NEAR(run.work_s + run.rework_s, computed_s, 1e-3);
  EXPECT_GT(run.seconds[static_cast<std::size_t>(Activity::queue)], 30 * 3600);
  EXPECT_NEAR(run.joules[0], 100 * run.seconds[0], 1e-3);
}

TEST(Simulation, TwoNeighboursAreTooManyForPartnersAndAGroupMendsThem) {
  // In the only record, nodes 4 and 5 are lost together at 1000 s.
  Job job;
  job.levels = {{1, 1, 0, 0, 1, 0, 0}, {2, 1, 0, 0, 5, 0, 0}, {3, 1, 0, 0, 20, 0, 0}};
  job.pattern = {100, {1, 2, 2}};
  job.horizon_s = 2000;
  Machine machine;
  machine.record = {{1000, Takes::nodes, 4, 2, 0}};
  machine.placement = {16, 4, 2};
  const History run = simulate(job, machine, 1);
  EXPECT_EQ(run.restarts, (std::vector<std::uint64_t>{0, 0, 1}));
  EXPECT_EQ(run.from_scratch, 0u);
  machine.placement.parity = 1;
  const History lost = simulate(job, machine, 1);
  EXPECT_EQ(lost.from_scratch, 1u);
  EXPECT_EQ(lost.restarts, (std::vector<std::uint64_t>{0, 0, 0})) << "nothing was restored";
  machine.record[0].first_node = 3;  // nodes 3 and 4 are in different groups
  EXPECT_EQ(simulate(job, machine, 1).from_scratch, 0u);
}

TEST(Simulation, WithoutSparesTheJobWaitsOrShrinks) {
  Job job;
  job.levels = {{4, 1, 0, 0, 1, 0, 0}};
  job.pattern = {100, {1}};
  job.work_s = 1000;
  Machine machine;
  machine.placement.nodes = 4;
  machine.record = {{500, Takes::nodes, 0, 1, 1e5}};
  machine.spares = 0;
  const History waits = simulate(job, machine, 1);
  EXPECT_GT(waits.seconds[static_cast<std::size_t>(Activity::down)], 0.99e5);
  machine.without_spare = WithoutSpare::shrink;
  const History shrinks = simulate(job, machine, 1);
  EXPECT_EQ(shrinks.seconds[static_cast<std::size_t>(Activity::down)], 0);
  // The rest of the work from the checkpoint at 404 s, 600 s, is done on three of four nodes.
  EXPECT_NEAR(shrinks.seconds[0], 400 + 96 + 600 / 0.75, 1);
}

TEST(Simulation, AnAllocationThatEndsCostsTheQueueAndNoWork) {
  Job job;
  job.levels = {{1, 1, 0, 0, 1, 0, 0}, {4, 10, 0, 0, 20, 0, 0}};
  job.pattern = {100, {1, 1000}};
  job.work_s = 10000;
  Machine machine;
  machine.allocation_s = 3000;
  machine.queue_s = 7000;
  const History run = simulate(job, machine, 1);
  EXPECT_EQ(run.rework_s, 0);
  EXPECT_EQ(run.seconds[static_cast<std::size_t>(Activity::queue)], 3 * 7000);
  EXPECT_EQ(run.restarts[1], 3u);
}

TEST(Simulation, ALevelThatThePatternLacksIsTakenAtTheEndOfAnAllocation) {
  Job job;
  job.levels = {{2, 1, 0, 0, 1, 0, 0}, {4, 10, 0, 0, 20, 0, 0}};
  job.pattern = {100, {1}};
  job.work_s = 10000;
  Machine machine;
  machine.allocation_s = 3000;
  ASSERT_TRUE(check(job, machine));
  const History run = simulate(job, machine, 1);
  EXPECT_EQ(run.rework_s, 0);
  EXPECT_EQ(run.checkpoints[1], 3u);
  EXPECT_EQ(run.restarts, (std::vector<std::uint64_t>{0, 3}));
  EXPECT_EQ(run.from_scratch, 0u);
}

TEST(Simulation, LowerClocksCostTimeAndSavePower) {
  Job job = one_level(0, 0);
  job.work_s = job.pattern.work_s * 100;
  Machine machine;  // nothing fails
  const History full = simulate(job, machine, 1);
  job.throttling = {1.1, 0.5};
  const History slow = simulate(job, machine, 1);
  const auto at = static_cast<std::size_t>(Activity::checkpoint);
  EXPECT_NEAR(slow.seconds[at] / full.seconds[at], 1.1, 1e-9);
  EXPECT_NEAR(slow.joules[at] / full.joules[at], 0.55, 1e-9);
}

TEST(Simulation, RefusesWhatCannotBePlayed) {
  Job job = one_level(10, 10);
  Machine machine = machine_of(job.levels);
  EXPECT_TRUE(check(job, machine));
  machine.allocation_s = 50;
  EXPECT_NE(check(job, machine).error().message.find("allocation is too short"), std::string::npos);
  machine.allocation_s = kNever_s;
  job.pattern.every = {1.5};
  EXPECT_FALSE(check(job, machine));
  job.pattern.every = {};
  EXPECT_FALSE(check(job, machine));
  job.pattern.every = {1};
  job.work_s = kNever_s;
  EXPECT_FALSE(check(job, machine));
}

TEST(Failures, MemoryGrowsWithWhatFailsAndNotWithTheMachine) {
  const FailureLaw law{LawKind::weibull, 1e9, 0.7};
  Failures failures({{"node", Takes::nodes, 1, law}}, 1'000'000, 1);
  for (int i = 0; i < 1000; ++i) failures.next();
  EXPECT_LE(failures.remembered(), 1000u);
}

TEST(Failures, ManyUnitsFailAsOftenAsTheirLawSays) {
  for (const FailureLaw& law :
       {FailureLaw{LawKind::exponential, 1e7, 1}, FailureLaw{LawKind::weibull, 1e7, 0.7},
        FailureLaw{LawKind::lognormal, 1e7, 1.5}}) {
    Failures failures({{"node", Takes::nodes, 1, law}}, 100'000, 2);
    // These are first failures of 100000 units until the cumulative hazard of one is 0.05.
    const double until_s = law.age_at(0.05);
    int count = 0;
    while (failures.next().time_s < until_s) ++count;
    const double first = 100'000 * -std::expm1(-0.05);
    EXPECT_GE(count, first * 0.96);
    EXPECT_LE(count, first * 1.2);  // some fail twice
  }
}

TEST(Failures, ACabinetFailsAsOneUnit) {
  Failures failures({{"cabinet", Takes::nodes, 64, {LawKind::exponential, 1e6, 1}}}, 1000, 3);
  double last_s = 0;
  for (int i = 0; i < 200; ++i) {
    const Failure failure = failures.next();
    EXPECT_EQ(failure.first_node % 64, 0u);
    EXPECT_EQ(failure.nodes, failure.first_node == 960 ? 40u : 64u);
    last_s = failure.time_s;
  }
  EXPECT_NEAR(last_s / 200, 1e6 / 16, 1e6 / 16 * 0.25);
}

TEST(Statistics, IntervalsAreThoseOfTables) {
  const Estimate five = estimate({1, 2, 3, 4, 5});
  EXPECT_DOUBLE_EQ(five.mean, 3);
  EXPECT_NEAR(five.half_width, 2.7764 * std::sqrt(2.5 / 5), 1e-4);
  EXPECT_NEAR(student_t_95(30), 2.0423, 1e-3);
  EXPECT_NEAR(student_t_95(1000), 1.9623, 1e-4);
  EXPECT_EQ(estimate({7}).half_width, 0);
}

}  // namespace
}  // namespace diapause::simulate
