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

TEST(Predict, EachMinuteHasTheDeepestLevelThatIsDue) {
  const MinuteSchedule schedule = *parse_minute_schedule("ckp(3,5,7,11)");
  EXPECT_THAT(schedule.taken_in(16 * 60), ElementsAre(4, 3, 2, 1));  // 3 6 9 12; 5 10 15; 7 14; 11
  EXPECT_THAT(schedule.taken_in(179.9), ElementsAre(0, 0, 0, 0));
}

TEST(Predict, ALongerRunHasMoreCheckpoints) {
  AppCosts costs{.runtime_s = 119, .node_w = 100, .bytes = 1};
  costs.level_s.fill(2);
  const PredictedRun run = predict_run(costs, *parse_minute_schedule("ckp(1,100,100,100)"), 1);
  EXPECT_THAT(run.checkpoints, ElementsAre(2, 0, 0, 0));
  EXPECT_DOUBLE_EQ(run.seconds, 123);
}

TEST(Predict, ACheckpointOfTwiceTheBytesCostsTwiceAsMuch) {
  AppCosts costs{.runtime_s = 600, .node_w = 100, .bytes = 10, .constant_s = 5};
  costs.level_s.fill(2);
  costs.level_j.fill(100);
  const MinuteSchedule schedule = *parse_minute_schedule("ckp(6,6,6,6)");
  EXPECT_DOUBLE_EQ(predict_run(costs, schedule, 10).seconds, 607);
  EXPECT_DOUBLE_EQ(predict_run(costs, schedule, 20).seconds, 609);
  EXPECT_DOUBLE_EQ(predict_run(costs, schedule, 20).joules, 60200);
}

// Printed: 1.02 % more time, 0.60 % more energy.
TEST(Predict, TellsWhatThePublishedMachineTookWithinItsBound) {
  const AppCosts costs = costs_of("theta-xc40", "heat");
  const PredictedRun run = predict_run(costs, *parse_minute_schedule("ckp(3,5,7,11)"), costs.bytes);
  EXPECT_NEAR(run.seconds, 1076 * 1.0102, run.seconds_off);
  EXPECT_NEAR(run.joules, 321046.12 * 1.006, run.joules_off);
}

TEST(Predict, WithoutCheckpointsItIsTheRunThatWasMeasured) {
  const AppCosts costs = costs_of("cooper-kaveri", "stream");
  const PredictedRun run = predict_run(costs, *parse_minute_schedule("none"), costs.bytes);
  EXPECT_EQ(run.seconds, costs.runtime_s);
  EXPECT_EQ(run.seconds_off, 0);
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
