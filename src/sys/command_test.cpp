#include "sys/command.hpp"

#include <gtest/gtest.h>

namespace diapause::sys {
namespace {

TEST(OutputOf, IsWhatTheCommandPrinted) {
  const auto text = output_of({"printf", "%s|", "a b", "$HOME"});
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, "a b|$HOME|");
}

TEST(OutputOf, IsAnErrorOfACommandThatFailsOrIsNotThere) {
  EXPECT_FALSE(output_of({"sh", "-c", "echo half; exit 1"}));
  const auto missing = output_of({"no-such-command"});
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("no-such-command"), std::string::npos);
}

TEST(OutputOf, EndsWithACommandThatPrintsWithoutEnd) { EXPECT_FALSE(output_of({"yes"})); }

TEST(OutputOf, LeavesTheCommandNothingToRead) {
  EXPECT_EQ(output_of({"cat"}).value_or("failed"), "");
}

}  // namespace
}  // namespace diapause::sys
