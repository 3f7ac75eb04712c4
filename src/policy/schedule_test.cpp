#include "policy/schedule.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

namespace diapause::policy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

config::Settings every_s(double l1, double l2 = 0, double l3 = 0, double l4 = 0) {
  config::Settings settings;
  settings.level(1).interval.seconds = l1;
  settings.level(2).interval.seconds = l2;
  settings.level(3).interval.seconds = l3;
  settings.level(4).interval.seconds = l4;
  return settings;
}

config::Settings every_calls(std::uint64_t l1, std::uint64_t l2 = 0, std::uint64_t l3 = 0,
                             std::uint64_t l4 = 0) {
  config::Settings settings;
  settings.level(1).interval.calls = l1;
  settings.level(2).interval.calls = l2;
  settings.level(3).interval.calls = l3;
  settings.level(4).interval.calls = l4;
  return settings;
}

struct Taken {
  int level;
  std::uint64_t call;
  double at_s;
  int agreements;  // agreements since the checkpoint before
};

// Runs a program that calls snapshot after every step, answered as by the engine.
struct Program {
  Schedule schedule;
  double now_s = 0;
  double checkpoint_s = 0;
  std::uint64_t call = 0;
  int agreements = 0;
  std::vector<Taken> checkpoints;

  explicit Program(const config::Settings& settings) : schedule(settings) {}

  void step(double call_s) {
    now_s += call_s;
    ++call;
    int level = 0;
    if (schedule.tick()) {
      ++agreements;
      level = schedule.decide(now_s);
    } else {
      level = schedule.calls_due();
    }
    if (level == 0) return;
    checkpoints.push_back({level, call, now_s, agreements});
    agreements = 0;
    now_s += checkpoint_s;
    schedule.taken(level, now_s);
  }

  void run_until(double end_s, const std::function<double()>& call_s) {
    while (now_s < end_s) step(call_s());
  }

  std::vector<int> levels() const {
    std::vector<int> result;
    for (const Taken& taken : checkpoints) result.push_back(taken.level);
    return result;
  }
};

TEST(Schedule, TakesALevelWithinTwoCallsOfItsTimeWithFewAgreements) {
  for (const double call_s : {1e-4, 1e-3, 7e-3, 0.1, 0.9, 3.0, 9.9, 11.0}) {
    Program program(every_s(10));
    program.run_until(200, [=] { return call_s; });
    ASSERT_GE(program.checkpoints.size(), 8U) << call_s;
    double due_s = 10;
    for (const Taken& taken : program.checkpoints) {
      EXPECT_GE(taken.at_s, due_s) << call_s;
      EXPECT_LE(taken.at_s, due_s + 2 * call_s) << call_s;
      EXPECT_LE(taken.agreements, call_s == 1e-3 ? 30 : 40) << call_s;
      due_s = taken.at_s + 10;
    }
  }
}

TEST(Schedule, StaysPunctualWhileCallsVary) {
  std::mt19937 random(3);
  std::exponential_distribution<double> call_s(1000);
  Program program(every_s(10));
  program.run_until(300, [&] { return call_s(random); });
  double due_s = 10;
  for (const Taken& taken : program.checkpoints) {
    EXPECT_LE(taken.at_s, due_s + 0.02);
    EXPECT_LE(taken.agreements, 40);
    due_s = taken.at_s + 10;
  }
  EXPECT_EQ(program.checkpoints.size(), 29U);
}

// Two ranks, of which the second has another clock. Both agree at the same calls and on the same
// levels.
TEST(Schedule, DecidesAlikeOnRanksThatKnowOnlyTheirOwnTimeAfterACheckpoint) {
  Schedule root(every_s(10));
  Schedule other(every_s(10));
  double now_s = 0;
  std::vector<double> taken_s;
  for (int call = 0; call < 20'000; ++call) {
    now_s += 7e-3;
    const bool agrees = root.tick();
    ASSERT_EQ(other.tick(), agrees) << call;
    int level = root.calls_due();
    if (agrees) {
      other.follow(root.times());
      level = root.decide(now_s);
      ASSERT_EQ(other.decide(now_s), level) << call;
    }
    if (level == 0) continue;
    taken_s.push_back(now_s);
    now_s += 1;
    root.taken_at_own_time(level, now_s);
    other.taken_at_own_time(level, 1e6 - 3 * now_s);
  }
  ASSERT_GE(taken_s.size(), 12U);
  for (std::size_t i = 1; i < taken_s.size(); ++i)
    EXPECT_NEAR(taken_s[i] - taken_s[i - 1], 11, 2e-2);
}

TEST(Schedule, AgreesAtTheCallAfterACheckpointOnlyIfTimeIsNeeded) {
  Schedule by_time(every_s(10));
  Schedule by_calls(every_calls(10));
  for (Schedule* schedule : {&by_time, &by_calls}) {
    for (int call = 0; call < 50; ++call) {
      if (schedule->tick()) schedule->decide(1e-3 * call);
    }
    schedule->taken_at_own_time(1, 1);
  }
  EXPECT_TRUE(by_time.tick());
  EXPECT_FALSE(by_calls.tick());
}

TEST(Schedule, AgreesLessOftenWhenCallsAreLongKnown) {
  Program program(every_s(10));
  program.run_until(60, [] { return 1e-3; });
  EXPECT_LE(program.checkpoints.back().agreements, 17);
}

TEST(Schedule, DoesNotCountTheTimeOfACheckpointAsCalls) {
  Program program(every_s(10));
  program.checkpoint_s = 25;
  program.run_until(100, [] { return 1e-3; });
  ASSERT_EQ(program.checkpoints.size(), 3U);
  EXPECT_LE(program.checkpoints[0].agreements, 30);
  EXPECT_LE(program.checkpoints[1].agreements, 17);
  EXPECT_NEAR(program.checkpoints[1].at_s - program.checkpoints[0].at_s, 35, 2e-3);
}

TEST(Schedule, ForgetsALongStartOfTheProgramQuickly) {
  Program program(every_s(600));
  program.now_s = 590;
  while (program.checkpoints.empty()) program.step(1e-3);
  EXPECT_NEAR(program.checkpoints[0].at_s, 600, 2e-3);
  EXPECT_LE(program.checkpoints[0].agreements, 40);
}

TEST(Schedule, IsPunctualWhenCallsSuddenlyTakeAlmostTwiceAsLong) {
  Program program(every_s(10));
  while (program.checkpoints.empty()) program.step(1e-3);
  while (program.checkpoints.size() < 2) program.step(1.9e-3);
  EXPECT_NEAR(program.checkpoints[1].at_s - program.checkpoints[0].at_s, 10, 4e-3);
}

TEST(Schedule, IsLateByAtMostHalfTheErrorWhenCallsSuddenlyTakeLonger) {
  for (const double slow_s : {2e-3, 5e-3, 2e-2, 0.1}) {
    for (int slow_from = 1; slow_from <= 9; ++slow_from) {
      Program program(every_s(10));
      program.run_until(slow_from, [] { return 1e-3; });
      while (program.checkpoints.empty()) program.step(slow_s);
      const double remaining_s = 10 - slow_from;
      // The plan in force was made with at most twice the time that was left when the slow calls
      // began.
      const double error_s = 2 * remaining_s * (slow_s / 1e-3 - 1);
      EXPECT_LE(program.checkpoints[0].at_s, 10 + slow_s + error_s / 2)
          << slow_s << " from " << slow_from;
    }
  }
}

TEST(Schedule, NeverLooksFurtherAheadThanItHasLookedBack) {
  Program program(every_s(10));
  for (int i = 0; i < 20; ++i) program.step(0);
  while (program.checkpoints.empty()) program.step(1.0);
  EXPECT_LE(program.checkpoints[0].at_s, 20);
}

TEST(Schedule, LooksAheadAtMostTheLargestStride) {
  Schedule schedule(every_s(1e6));
  std::uint64_t last = 0;
  for (std::uint64_t call = 1; call <= 10 * Schedule::kMaxStride; ++call) {
    if (!schedule.tick()) continue;
    EXPECT_LE(call - last, Schedule::kMaxStride);
    last = call;
    EXPECT_EQ(schedule.decide(0), 0);
  }
  EXPECT_GE(last, 9 * Schedule::kMaxStride);
}

TEST(Schedule, SurvivesCallsLongerThanEveryInterval) {
  Program program(every_s(1, 2, 4, 8));
  for (int i = 0; i < 5; ++i) program.step(1e7);
  EXPECT_THAT(program.levels(), ElementsAre(4, 4, 4, 4, 4));
}

TEST(Schedule, TakesAClockThatStepsBackToHaveStoodStill) {
  Program program(every_s(10));
  program.run_until(6, [] { return 0.1; });
  program.now_s -= 1000;
  const double start_s = program.now_s;
  while (program.checkpoints.empty()) program.step(0.1);
  EXPECT_LE(program.checkpoints[0].at_s - start_s, 10.2);
  EXPECT_GE(program.checkpoints[0].at_s - start_s, 3.9);
}

TEST(Schedule, TakesWhatIsDueWhenTheClockJumpsAhead) {
  Program program(every_s(10));
  program.run_until(9, [] { return 0.1; });
  program.now_s += 1e5;
  const std::uint64_t before = program.call;
  while (program.checkpoints.empty()) program.step(0.1);
  EXPECT_LE(program.call - before, 6U);
  program.run_until(program.now_s + 10.3, [] { return 0.1; });
  EXPECT_EQ(program.checkpoints.size(), 2U);
}

TEST(Schedule, IgnoresAClockThatIsNotANumber) {
  Schedule schedule(every_s(10));
  for (const double now_s : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    ASSERT_TRUE(schedule.tick());
    EXPECT_EQ(schedule.decide(now_s), 0);
  }
  while (!schedule.tick()) {
  }
  EXPECT_EQ(schedule.decide(11), 1);
}

TEST(Schedule, TheHighestLevelDueCoversTheLowerOnes) {
  Program program(every_s(3, 5, 7, 11));
  program.run_until(12.5, [] { return 0.5; });
  // Level 1 is due at 3, level 2 at 5, level 3 at 7, which restarts 1 and 2, level 1 at 10, and
  // level 4 at 11.
  EXPECT_THAT(program.levels(), ElementsAre(1, 2, 3, 1, 4));
  EXPECT_EQ(program.checkpoints[3].at_s, 10);
}

TEST(Schedule, CallCountsNeedNoAgreement) {
  Program program(every_calls(2, 0, 5, 0));
  for (int i = 0; i < 10; ++i) program.step(100);
  EXPECT_THAT(program.levels(), ElementsAre(1, 1, 3, 1, 1, 3));
  for (const Taken& taken : program.checkpoints) EXPECT_EQ(taken.agreements, 0);
  EXPECT_EQ(program.checkpoints[3].call, 7U);
}

TEST(Schedule, AnAgreedCallAlsoTakesWhatIsDueByCalls) {
  config::Settings settings = every_s(10);
  settings.level(2).interval.calls = 1;
  Schedule schedule(settings);
  ASSERT_TRUE(schedule.tick());
  EXPECT_EQ(schedule.decide(11), 2);
  schedule.taken(2, 11);
  schedule.tick();
  EXPECT_EQ(schedule.calls_due(), 2);
}

TEST(Schedule, LevelsByCallsAndLevelsByTimeKeepTheirOwnRhythm) {
  config::Settings settings = every_s(0, 0, 0, 10);
  settings.level(1).interval.calls = 1500;
  Program program(settings);
  program.run_until(30.5, [] { return 1e-3; });
  EXPECT_EQ(std::ranges::count(program.levels(), 4), 3);
  EXPECT_EQ(std::ranges::count(program.levels(), 1), 18);
}

TEST(Schedule, ACheckpointOutsideASnapshotRestartsTheIntervalsItCovers) {
  Program program(every_s(10, 10));
  program.run_until(9, [] { return 0.5; });
  program.schedule.taken(1, program.now_s);
  program.run_until(12, [] { return 0.5; });
  EXPECT_THAT(program.levels(), ElementsAre(2));
}

TEST(Schedule, ALevelThatWasNotTakenStaysDue) {
  Schedule schedule(every_s(10));
  ASSERT_TRUE(schedule.tick());
  EXPECT_EQ(schedule.decide(10), 1);
  schedule.taken(0, 10);
  ASSERT_TRUE(schedule.tick());
  EXPECT_EQ(schedule.decide(11), 1);
}

// The ranks agree about once a second on events that may occur at any time, whatever the intervals
// and the duration of calls are.
TEST(Schedule, AgreesAsOftenAsAskedBesidesTheIntervals) {
  for (const config::Settings& settings : {every_s(0), every_s(1e6), every_calls(100000000)}) {
    for (const double call_s : {1e-3, 0.3, 5.0}) {
      Program program(settings);
      program.schedule.agree_every(1);
      double last_s = 0;
      while (program.now_s < 1000) {
        const int before = program.agreements;
        program.step(call_s);
        if (program.agreements == before) continue;
        ASSERT_LE(program.now_s - last_s, std::max(1.0, call_s) + 1e-6)
            << "calls of " << call_s << " s";
        last_s = program.now_s;
      }
      EXPECT_LT(program.agreements, 1300) << "calls of " << call_s << " s";
      EXPECT_THAT(program.checkpoints, IsEmpty());
    }
  }
}

TEST(Schedule, ForeseesTheNextAgreement) {
  Program program(every_s(0));
  program.schedule.agree_every(1);
  EXPECT_EQ(program.schedule.until_next_s(), 0);
  program.run_until(10, [] { return 0.3; });
  while (program.agreements == 0 || program.schedule.until_next_s() < 0.31) program.step(0.3);
  EXPECT_NEAR(program.schedule.until_next_s(), 0.9, 0.31);
}

TEST(Schedule, WithoutIntervalsNothingIsEverDue) {
  Program program(every_s(0));
  for (int i = 0; i < 1000; ++i) program.step(1e6);
  EXPECT_THAT(program.checkpoints, IsEmpty());
  EXPECT_EQ(program.agreements, 0);
  EXPECT_FALSE(program.schedule.any_interval());
  EXPECT_TRUE(Schedule(every_s(0, 1)).any_interval());
  EXPECT_TRUE(Schedule(every_calls(0, 0, 0, 1)).any_interval());
}

TEST(Levels, NeedSoManyNodesThatTheLossTheyAreForLeavesEnough) {
  config::Settings settings;
  settings.parity = 2;
  EXPECT_EQ(nodes_needed(settings, 1), 1u);
  EXPECT_EQ(nodes_needed(settings, 2), 2u);
  EXPECT_EQ(nodes_needed(settings, 3), 3u);
  EXPECT_EQ(nodes_needed(settings, 4), 1u);
}

}  // namespace
}  // namespace diapause::policy
