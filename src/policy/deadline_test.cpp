#include "policy/deadline.hpp"

#include <gtest/gtest.h>

namespace diapause::policy {
namespace {

constexpr std::uint64_t kGB = 1'000'000'000;

LevelSeconds taking(double l1, double l2, double l3, double l4) {
  return {std::nullopt, l1, l2, l3, l4};
}

TEST(CheckpointTimes, BelievesASlowerOneAtOnceAndAFasterOneByHalves) {
  CheckpointTimes times;
  times.learn(4, kGB, 10);
  EXPECT_DOUBLE_EQ(times.expect(4, kGB, 1), 15);
  times.learn(4, kGB, 20);
  EXPECT_DOUBLE_EQ(times.expect(4, kGB, 1), 30);
  times.learn(4, kGB, 10);
  EXPECT_DOUBLE_EQ(times.expect(4, kGB, 1), 22.5);
}

TEST(CheckpointTimes, CountsWithMoreForMoreBytesAndNotWithLessForFewer) {
  CheckpointTimes times;
  times.learn(2, kGB, 4);
  EXPECT_DOUBLE_EQ(times.expect(2, 3 * kGB, 1), 18);
  EXPECT_DOUBLE_EQ(times.expect(2, kGB / 10, 1), 6);
}

TEST(CheckpointTimes, KnowsNothingOfOneLevelFromAnother) {
  CheckpointTimes times;
  times.learn(1, 10 * kGB, 0.1);
  EXPECT_GT(times.expect(4, 10 * kGB, 1), 100);
}

TEST(CheckpointTimes, GuessesBeforeAnythingWasSeenByTheBytesOfANode) {
  const CheckpointTimes times;
  EXPECT_DOUBLE_EQ(times.expect(1, 10 * kGB, 1), 22);
  EXPECT_DOUBLE_EQ(times.expect(4, 10 * kGB, 1), 102);
  EXPECT_DOUBLE_EQ(times.expect(4, 10 * kGB, 10), 12);
}

TEST(CheckpointTimes, TakesACheckpointOfNothingForOneOfAByte) {
  CheckpointTimes times;
  times.learn(1, 0, 0.5);
  EXPECT_DOUBLE_EQ(times.expect(1, 0, 1), 0.75);
  EXPECT_DOUBLE_EQ(times.expect(1, 2, 1), 1.5);
}

TEST(DeepestInTime, IsTheDeepestThatFits) {
  const LevelSeconds levels = taking(1, 4, 8, 60);
  EXPECT_EQ(deepest_in_time(levels, 61), 4);
  EXPECT_EQ(deepest_in_time(levels, 60), 4);
  EXPECT_EQ(deepest_in_time(levels, 59), 3);
  EXPECT_EQ(deepest_in_time(levels, 5), 2);
  EXPECT_EQ(deepest_in_time(levels, 2), 1);
}

TEST(DeepestInTime, IsLevel1WhereNothingFits) {
  EXPECT_EQ(deepest_in_time(taking(10, 20, 20, 30), 5), 1);
  EXPECT_EQ(deepest_in_time(taking(10, 20, 20, 30), -5), 1);
}

TEST(DeepestInTime, LeavesOutWhatCannotBeTaken) {
  LevelSeconds levels = taking(1, 2, 3, 4);
  levels[4].reset();
  EXPECT_EQ(deepest_in_time(levels, 100), 3);
  levels[3].reset();
  levels[2].reset();
  EXPECT_EQ(deepest_in_time(levels, 100), 1);
}

TEST(Lead, IsThatOfTheDeepestLevelWorthItsTime) {
  EXPECT_DOUBLE_EQ(lead_s(taking(1, 4, 8, 60), 3600), 60);
  EXPECT_DOUBLE_EQ(lead_s(taking(1, 4, 8, 60), 120), 8)
      << "half of the allocation is too much for one checkpoint";
  EXPECT_DOUBLE_EQ(lead_s(taking(1, 4, 8, 60), 2), 1);
}

TEST(MustBegin, IsWhenWaitingForTheNextCallCouldBeTooLate) {
  EXPECT_FALSE(must_begin(100, 10, 1));
  EXPECT_FALSE(must_begin(12.1, 10, 1));
  EXPECT_TRUE(must_begin(12, 10, 1));
  EXPECT_TRUE(must_begin(100, 10, 45)) << "a call may take as long again as it did";
  EXPECT_TRUE(must_begin(-1, 0, 0));
}

// Even if calls take up to twice their former time, the checkpoint begins while it can end in time.
TEST(MustBegin, IsNeverTooLateForCallsThatTakeUpToTwiceTheirTime) {
  for (const double call_s : {0.01, 1.0, 7.0, 40.0}) {
    double left_s = 1000;
    while (!must_begin(left_s, 30, call_s)) left_s -= 2 * call_s;
    EXPECT_GE(left_s, 30) << call_s;
  }
}

}  // namespace
}  // namespace diapause::policy
