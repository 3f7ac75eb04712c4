#include "cli/slurm_energy.hpp"

#include <gmock/gmock.h>

namespace diapause::cli {
namespace {

TEST(SlurmEnergy, IsThatOfTheJobItself) {
  const auto energy = parse_sacct("77|12000|130\n77.batch|4000|130\n77.0|11900|125\n");
  ASSERT_TRUE(energy.has_value());
  EXPECT_EQ(energy->joules, 12000);
  EXPECT_EQ(energy->seconds, 130);
  EXPECT_THAT(energy->jobs, testing::ElementsAre("77"));
}

TEST(SlurmEnergy, IsThatOfTheStepsWhereTheJobHasNoneAndTheBatchStepIsOneBesideThem) {
  const auto energy =
      parse_sacct("77||130\n77.batch|4000|130\n77.extern|5|130\n77.0|7000|60\n77.1|5000|50\n");
  ASSERT_TRUE(energy.has_value());
  EXPECT_EQ(energy->joules, 12000);
  EXPECT_EQ(energy->seconds, 130);
}

TEST(SlurmEnergy, IsUnknownOnClustersThatDoNotMeasureIt) {
  EXPECT_FALSE(parse_sacct("77|0|130\n77.0|0|125\n").has_value());
  EXPECT_FALSE(parse_sacct("77|18446744073709551614|130\n").has_value());
  EXPECT_FALSE(parse_sacct("sacct: error: cannot connect\n").has_value());
  EXPECT_FALSE(parse_sacct("").has_value());
}

}  // namespace
}  // namespace diapause::cli
