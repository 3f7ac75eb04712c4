#include "cli/slurm_energy.hpp"

#include <gmock/gmock.h>

namespace diapause::cli {
namespace {

std::optional<SlurmEnergy> parsed(std::string_view answer,
                                  const std::set<std::string>& jobs = {"77"}) {
  return parse_sacct(answer, jobs);
}

TEST(SlurmEnergy, IsThatOfTheJobItself) {
  const auto energy = parsed("77|77|12000|130\n77.batch|77.batch|4000|130\n77.0|77.0|11900|125\n");
  ASSERT_TRUE(energy.has_value());
  EXPECT_EQ(energy->joules, 12000);
  EXPECT_EQ(energy->seconds, 130);
  EXPECT_THAT(energy->jobs, testing::ElementsAre("77"));
}

TEST(SlurmEnergy, IsThatOfTheStepsWhereTheJobHasNoneAndTheBatchStepIsOneBesideThem) {
  const auto energy = parsed(
      "77|77||130\n77.batch|77.batch|4000|130\n77.extern|77.extern|5|130\n"
      "77.0|77.0|7000|60\n77.1|77.1|5000|50\n");
  ASSERT_TRUE(energy.has_value());
  EXPECT_EQ(energy->joules, 12000);
  EXPECT_EQ(energy->seconds, 130);
}

TEST(SlurmEnergy, OfSeveralJobsIsTheirSumAndEachMayTellItInItsWay) {
  const auto energy =
      parsed("77|77|12000|130\n77.0|77.0|11900|125\n78|78||50\n78.0|78.0|3000|40\n79|79|0|20\n",
             {"77", "78", "79"});
  ASSERT_TRUE(energy.has_value());
  EXPECT_EQ(energy->joules, 15000);
  EXPECT_EQ(energy->seconds, 180);
  EXPECT_THAT(energy->jobs, testing::ElementsAre("77", "78"));
}

TEST(SlurmEnergy, OfAHeterogeneousJobIsTheSumOfPartsThatRunAtTheSameTime) {
  const auto energy = parsed("77+0|77|12000|130\n77+0.0|77.0|11000|130\n77+1|78|3000|90\n");
  ASSERT_TRUE(energy.has_value());
  EXPECT_EQ(energy->joules, 15000);
  EXPECT_EQ(energy->seconds, 130);
  EXPECT_THAT(energy->jobs, testing::ElementsAre("77"));
}

// The last task of an array has the number of the array, with which sacct tells of all tasks.
TEST(SlurmEnergy, OfOtherTasksOfAnArrayIsNotThatOfTheJob) {
  const auto energy = parsed("77_1|78|9000|70\n77_2|77|500|60\n");
  ASSERT_TRUE(energy.has_value());
  EXPECT_EQ(energy->joules, 500);
  EXPECT_EQ(energy->seconds, 60);
}

TEST(SlurmEnergy, HasTimesThatAreFinite) {
  for (const char* const seconds : {"inf", "nan", "-3", "1e300"}) {
    const auto energy = parsed(std::string("77|77|500|") + seconds + "\n");
    ASSERT_TRUE(energy.has_value());
    EXPECT_EQ(energy->seconds, 0) << seconds;
  }
}

TEST(SlurmEnergy, IsUnknownOnClustersThatDoNotMeasureIt) {
  EXPECT_FALSE(parsed("77|77|0|130\n77.0|77.0|0|125\n").has_value());
  EXPECT_FALSE(parsed("77|77|18446744073709551614|130\n").has_value());
  EXPECT_FALSE(parsed("sacct: error: cannot connect\n").has_value());
  EXPECT_FALSE(parsed("").has_value());
}

}  // namespace
}  // namespace diapause::cli
