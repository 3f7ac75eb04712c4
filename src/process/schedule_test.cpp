#include "process/schedule.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace diapause::process {
namespace {

ByteVector mask(std::initializer_list<unsigned> bytes) {
  ByteVector made;
  for (const unsigned byte : bytes) made.push_back(static_cast<std::byte>(byte));
  return made;
}

TEST(ProcessorsOfTwoMasks, AreThoseInBoth) {
  EXPECT_EQ(common_processors(mask({0b1110, 1}), mask({0b0111, 1})), mask({0b0110, 1}));
}

TEST(ProcessorsOfTwoMasks, AreOfTheSmallerMachine) {
  EXPECT_EQ(common_processors(mask({2, 0, 0xff}), mask({3})), mask({2}));
}

TEST(ProcessorsOfTwoMasks, AreNoneIfTheyShareNone) {
  EXPECT_TRUE(common_processors(mask({0b1100}), mask({0b0011})).empty());
  EXPECT_TRUE(common_processors(mask({0, 1}), mask({3})).empty());
}

TEST(TheScheduleOfAThread, IsItsOwnOnlyWhereItDiffers) {
  const Schedule given = schedule_of(::getpid());
  EXPECT_FALSE(is_empty(given));
  EXPECT_TRUE(is_empty(own_part(given, given)));
  Schedule other = given;
  other.niceness = given.niceness == 1 ? 2 : 1;
  const Schedule own = own_part(other, given);
  EXPECT_EQ(own.niceness, other.niceness);
  EXPECT_TRUE(own.processors.empty());
  EXPECT_TRUE(own.policy.empty());
}

}  // namespace
}  // namespace diapause::process
