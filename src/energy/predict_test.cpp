#include "energy/predict.hpp"

#include <gmock/gmock.h>

#include "energy/profile.hpp"

namespace diapause::energy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

AppCosts costs_of(const std::string& profile, const std::string& app) {
  return *parse_app_costs(built_in_profile(profile), profile, app);
}

PredictedRun run_of(const AppCosts& costs, const std::string& schedule, double bytes) {
  return *predict_run(costs, *parse_minute_schedule(schedule), bytes);
}

AppCosts costs_of_seconds(double runtime_s) {
  return {.runtime_s = runtime_s, .node_w = 100, .bytes = 10};
}

TEST(Predict, EachMinuteHasTheDeepestLevelThatIsDue) {
  const auto taken = [](double seconds) {
    return run_of(costs_of_seconds(seconds), "ckp(3,5,7,11)", 10).checkpoints;
  };
  EXPECT_THAT(taken(16 * 60), ElementsAre(4, 3, 2, 1));  // 3 6 9 12; 5 10 15; 7 14; 11
  EXPECT_THAT(taken(179.9), ElementsAre(0, 0, 0, 0));
}

TEST(Predict, ALongerRunHasMoreCheckpoints) {
  AppCosts costs = costs_of_seconds(119);
  costs.level_s.fill(2);
  const PredictedRun run = run_of(costs, "ckp(1,100,100,100)", 10);
  EXPECT_THAT(run.checkpoints, ElementsAre(2, 0, 0, 0));
  EXPECT_DOUBLE_EQ(run.seconds, 123);
}

TEST(Predict, ACheckpointOfTwiceTheBytesCostsTwiceAsMuch) {
  AppCosts costs = costs_of_seconds(600);
  costs.constant_s = 5;
  costs.level_s.fill(2);
  costs.level_j.fill(100);
  EXPECT_DOUBLE_EQ(run_of(costs, "ckp(6,6,6,6)", 10).seconds, 607);
  EXPECT_DOUBLE_EQ(run_of(costs, "ckp(6,6,6,6)", 20).seconds, 609);
  EXPECT_DOUBLE_EQ(run_of(costs, "ckp(6,6,6,6)", 20).joules, 60200);
}

TEST(Predict, ARunThatDoesNotEndIsAnError) {
  AppCosts costs = costs_of_seconds(600);
  costs.level_s.fill(10);
  const MinuteSchedule each_minute = *parse_minute_schedule("ckp(1,0,0,0)");
  EXPECT_TRUE(predict_run(costs, each_minute, 50));
  EXPECT_THAT(predict_run(costs, each_minute, 60).error().message,
              HasSubstr("with checkpoints of 60 bytes the run has not ended"));
  EXPECT_THAT(predict_run(costs_of_seconds(1e9), each_minute, 10).error().message,
              HasSubstr("a run of 1e+09 s without checkpoints"));
}

TEST(Predict, WithoutACheckpointNothingIsAdded) {
  AppCosts costs = costs_of_seconds(600);
  costs.constant_s = 5;
  costs.constant_j = -100;
  costs.runtime_off_percent = 1;
  const PredictedRun run = run_of(costs, "ckp(0,0,0,11)", 10);
  EXPECT_EQ(run.seconds, 600);
  EXPECT_EQ(run.joules, 60000);
  EXPECT_EQ(run.seconds_off.together(), 0);
}

TEST(Predict, JoulesBelowZeroAreRefused) {
  AppCosts costs = costs_of_seconds(600);
  costs.level_j.fill(-60000);
  EXPECT_THAT(predict_run(costs, *parse_minute_schedule("ckp(6,6,6,6)"), 10).error().message,
              HasSubstr("level_1_j"));
}

TEST(Predict, TheBoundFollowsTheBytes) {
  AppCosts costs = costs_of_seconds(1000);
  costs.level_s.fill(2);
  costs.runtime_off_percent = 1;
  const auto off = [&](double bytes) {
    return run_of(costs, "ckp(4,4,4,4)", bytes).seconds_off.of_change();
  };
  EXPECT_DOUBLE_EQ(off(10), 10 * 1.008);
  EXPECT_DOUBLE_EQ(off(20), (2 * 10 + 8) * 1.016);  // twice the error of the fit; all that is added
  EXPECT_DOUBLE_EQ(off(5), (10 + 4) * 1.004);       // half of the cost may not have gone
}

// The costs of a checkpoint of one program, scaled to the bytes of the other on the same machine,
// are those of the other within both bounds.
TEST(Predict, CostsScaledByBytesAreWithinTheBoundOnThePublishedMachines) {
  const auto added = [](AppCosts costs, const AppCosts& of, double bytes) {
    costs.runtime_s = of.runtime_s;
    costs.node_w = of.node_w;
    costs.constant_s = costs.constant_j = 0;
    return run_of(costs, "ckp(3,5,7,11)", bytes);
  };
  for (const char* const machine : {"theta-xc40", "mira-bgq", "shepard-haswell", "cooper-kaveri"}) {
    const AppCosts programs[] = {costs_of(machine, "heat"), costs_of(machine, "stream")};
    for (const int from : {0, 1}) {
      const AppCosts& other = programs[1 - from];
      const PredictedRun scaled = added(programs[from], other, other.bytes);
      const PredictedRun fitted = added(other, other, other.bytes);
      const double off_s = scaled.seconds_off.of_change() + fitted.seconds_off.of_change();
      const double off_j = scaled.joules_off.of_change() + fitted.joules_off.of_change();
      EXPECT_NEAR(scaled.seconds, fitted.seconds, off_s) << machine << from;
      EXPECT_NEAR(scaled.joules, fitted.joules, off_j) << machine << from;
    }
  }
}

// Printed: 1.02 % more time, 0.60 % more energy.
TEST(Predict, TellsWhatThePublishedMachineTookWithinItsBound) {
  const AppCosts costs = costs_of("theta-xc40", "heat");
  const PredictedRun run = run_of(costs, "ckp(3,5,7,11)", costs.bytes);
  EXPECT_NEAR(run.seconds, 1076 * 1.0102, run.seconds_off.of_change());
  EXPECT_NEAR(run.joules, 321046.12 * 1.006, run.joules_off.of_change());
}

TEST(Predict, WithoutCheckpointsItIsTheRunThatWasMeasured) {
  const AppCosts costs = costs_of("cooper-kaveri", "stream");
  const PredictedRun run = run_of(costs, "none", costs.bytes);
  EXPECT_EQ(run.seconds, costs.runtime_s);
  EXPECT_EQ(run.seconds_off.together(), 0);
}

TEST(Predict, TheMeterIsOffByAShareOfAllEnergyAndInNoChange) {
  AppCosts costs = costs_of_seconds(1000);
  costs.level_j.fill(100);
  costs.energy_off_percent = 1;
  const PredictedRun run = run_of(costs, "ckp(4,4,4,4)", 10);
  EXPECT_DOUBLE_EQ(run.joules_off.meter, 0.1 * 100400);
  EXPECT_DOUBLE_EQ(run.joules_off.fit, 1000);
  EXPECT_DOUBLE_EQ(run.joules_off.bytes, 0);
  EXPECT_DOUBLE_EQ(run.joules_off.of_change(), 1000);
  EXPECT_DOUBLE_EQ(run.joules_off.together(), 11040);
  EXPECT_DOUBLE_EQ(run.watts_off().meter, 0.1 * run.watts());
}

TEST(Predict, BadSchedulesAndProgramsAreNamed) {
  for (const char* const bad :
       {"", "ckp", "ckp()", "ckp(1,2,3)", "ckp(1,2,3,4,5)", "ckp(1,2,3,x)", "ckp(1,2,3,4",
        "ckp(-1,2,3,4)", "ckp(1,2,3,99999999999999999999)"}) {
    EXPECT_THAT(parse_minute_schedule(bad).error().message, HasSubstr("ckp(3,5,7,11)")) << bad;
  }
  EXPECT_THAT(parse_app_costs(built_in_profile("theta-xc40"), "theta", "cg").error().message,
              HasSubstr("theta has no program 'cg'; it has heat, stream"));
  EXPECT_THAT(parse_app_costs(built_in_profile("generic"), "generic", "heat").error().message,
              HasSubstr("[app.*]"));
  EXPECT_THAT(parse_app_costs("[app.x]\nruntime_s = 3", "mine", "x").error().message,
              HasSubstr("mine: [app.x]"));
}

}  // namespace
}  // namespace diapause::energy
