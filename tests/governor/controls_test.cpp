// Tests what stands in a control, whatever happens meanwhile.
#include <gmock/gmock.h>

#include "governor/node.hpp"
#include "support/fault_kernel.hpp"

namespace diapause::governor_test {
namespace {

using governor::Controls;
using governor::Setting;
using testing::HasSubstr;
using testing::SizeIs;

class ControlsTest : public testing::Test {
 protected:
  void SetUp() override {
    node.put("a", "3000");
    node.put("b", "2000");
  }
  std::vector<Setting> both(const std::string& a, const std::string& b) const {
    return {{node.path("a"), a}, {node.path("b"), b}};
  }
  std::string values() const { return node.get("a") + " " + node.get("b"); }
  std::string journal() const { return node.get("../state/journal"); }

  Node node;
};

TEST_F(ControlsTest, HoldWhatIsWantedAndThenWhatStoodThereBefore) {
  Controls controls = node.controls();
  const auto held = controls.want(owner(1), both("2500", "1500"));
  ASSERT_TRUE(held) << held.error().message;
  EXPECT_THAT(*held, testing::ElementsAre("2500", "1500"));
  EXPECT_EQ(values(), "2500 1500");
  const auto outcome = controls.want_nothing(owner(1));
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->put_back, 2U);
  EXPECT_EQ(values(), "3000 2000");
}

TEST_F(ControlsTest, AreNeverRaised) {
  Controls controls = node.controls();
  ASSERT_TRUE(controls.want(owner(1), both("4000", "1500")));
  EXPECT_EQ(values(), "3000 1500");
}

TEST_F(ControlsTest, HoldTheLowestThatAnyJobWants) {
  Controls one = node.controls(), other = node.controls();
  ASSERT_TRUE(one.want(owner(1), both("2500", "1200")));
  ASSERT_TRUE(other.want(owner(2), both("2200", "1800")));
  EXPECT_EQ(values(), "2200 1200");
  ASSERT_TRUE(one.want_nothing(owner(1)));
  EXPECT_EQ(values(), "2200 1800");
  ASSERT_TRUE(other.want_nothing(owner(2)));
  EXPECT_EQ(values(), "3000 2000");
}

TEST_F(ControlsTest, AreLeftAloneOnceSomebodyElseHasChangedThem) {
  Controls controls = node.controls();
  ASSERT_TRUE(controls.want(owner(1), both("2500", "1500")));
  node.put("a", "1000");
  const auto outcome = controls.want_nothing(owner(1));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->left_alone, 1U);
  EXPECT_EQ(values(), "1000 2000");
}

TEST_F(ControlsTest, GoBackToWhatSomebodyElseDecidedMeanwhile) {
  Controls controls = node.controls();
  ASSERT_TRUE(controls.want(owner(1), both("2500", "1500")));
  node.put("a", "2900");
  ASSERT_TRUE(controls.want(owner(2), both("2400", "1500")));
  EXPECT_EQ(values(), "2400 1500");
  ASSERT_TRUE(controls.want_nothing(owner(2)));
  ASSERT_TRUE(controls.want_nothing(owner(1)));
  EXPECT_EQ(values(), "2900 2000");
}

TEST_F(ControlsTest, OfTheOneThatCannotBePutBackDoNotKeepTheOthersFromIt) {
  Controls controls = node.controls();
  node.put("a", "70000");
  ASSERT_TRUE(controls.want(owner(1), both("65536", "1500")));
  node.refuse("a");  // reads as what we wrote
  const auto outcome = controls.want_nothing(owner(1));
  ASSERT_TRUE(outcome);
  ASSERT_THAT(outcome->errors, SizeIs(1));
  EXPECT_THAT(outcome->errors[0].message, HasSubstr(node.path("a")));
  EXPECT_EQ(node.get("b"), "2000");

  // It stays in the journal, for somebody who may.
  node.remove("a");
  node.put("a", "65536");
  ASSERT_TRUE(controls.clean_up([](const auto&) { return true; }));
  EXPECT_EQ(node.get("a"), "70000");
}

TEST_F(ControlsTest, ThatVanishedDoNotKeepTheOthersFromBeingPutBack) {
  Controls controls = node.controls();
  ASSERT_TRUE(controls.want(owner(1), both("2500", "1500")));
  node.remove("a");
  const auto outcome = controls.want_nothing(owner(1));
  ASSERT_TRUE(outcome);
  EXPECT_THAT(outcome->errors, SizeIs(0));
  EXPECT_EQ(values(), "(none) 2000");
}

TEST_F(ControlsTest, AreAllSetOrNone) {
  Controls controls = node.controls();
  node.put("b", "70000");
  node.refuse("b");
  const auto held = controls.want(owner(1), both("2500", "1500"));
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code, Code::denied);
  EXPECT_THAT(held.error().message, HasSubstr(node.path("b")));
  EXPECT_EQ(node.get("a"), "3000");
}

TEST_F(ControlsTest, OfAnotherBootAreNotTouched) {
  ASSERT_TRUE(node.controls("yesterday").want(owner(1), both("2500", "1500")));
  const auto outcome = node.controls("today").clean_up([](const auto&) { return true; });
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->put_back, 0U);
  EXPECT_EQ(values(), "2500 1500");
}

TEST_F(ControlsTest, OfDeadJobsArePutBackAndThoseOfOthersStay) {
  Controls controls = node.controls();
  ASSERT_TRUE(controls.want(owner(1), {{node.path("a"), "2500"}}));
  ASSERT_TRUE(controls.want(owner(2), {{node.path("b"), "1500"}}));
  ASSERT_TRUE(controls.clean_up([](const auto& who) { return who == owner(1); }));
  EXPECT_EQ(values(), "3000 1500");
}

// Slows and lets go again, over a kernel on which something goes wrong; whether it came to that.
bool slow_and_let_go(const Node& node, test_support::FaultPlan plan) {
  test_support::FaultKernel kernel(sys::real_kernel(), plan);
  auto controls = Controls::open(kernel, node.state(), kBoot);
  if (controls) {
    (void)controls->want(owner(1), {{node.path("a"), "2500"}, {node.path("b"), "1500"}});
    (void)controls->want_nothing(owner(1));
  }
  return kernel.reached();
}

class WhateverGoesWrong : public ControlsTest,
                          public testing::WithParamInterface<test_support::Fault> {};
INSTANTIATE_TEST_SUITE_P(Faults, WhateverGoesWrong,
                         testing::Values(test_support::Fault::stop,
                                         test_support::Fault::fail_once));

TEST_P(WhateverGoesWrong, AtAnyCallTheOriginalValuesCanBePutBack) {
  for (std::uint64_t call = 0; slow_and_let_go(node, {GetParam(), call}); ++call) {
    const auto outcome = node.controls().clean_up([](const auto&) { return true; });
    ASSERT_TRUE(outcome) << outcome.error().message;
    ASSERT_EQ(values(), "3000 2000") << "call " << call;
  }
}

TEST_F(ControlsTest, AreNotTouchedWhereTheJournalCannotBeRead) {
  ASSERT_TRUE(node.controls().want_nothing(owner(1)));
  node.put("../state/journal", "something else");
  std::filesystem::permissions(node.path("../state/journal"), std::filesystem::perms::owner_all);
  const auto held = node.controls().want(owner(1), both("2500", "1500"));
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code, Code::corrupt);
  EXPECT_EQ(values(), "3000 2000");
}

TEST(Journal, IsReadAsItWasWritten) {
  governor::Journal journal{
      "boot", {{"/sys/a b", "max", {"1 2", "3"}, true, {{{4711, 9, 7}, "1 2"}}}}, {}};
  journal.groups.push_back({{4711, 9, 7}, "/sys/fs/cgroup/x"});
  const std::string text = to_text(journal);
  const auto read = governor::parse_journal(text, "j");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_text(*read), text);
}

TEST(Journal, OfWhichAnyLineIsMissingOrCutIsReadWithoutHarmOrRefused) {
  governor::Journal journal{"boot", {{"/sys/a", "3", {"1", "2"}, true, {{{4711, 9, 7}, "1"}}}}, {}};
  const std::string text = to_text(journal);
  for (std::size_t length = 0; length < text.size(); ++length) {
    const auto read = governor::parse_journal(text.substr(0, length), "j");
    EXPECT_TRUE(read ? text[length - 1] == '\n' : read.error().code == Code::corrupt) << length;
  }
}

TEST(Journal, WithoutABootOrAnOriginalIsRefused) {
  const governor::Journal journal{
      "boot", {{"/sys/a", "3", {"1"}, false, {}}, {"/sys/b", "4", {"1"}, false, {}}}, {}};
  for (const std::string missing : {"boot boot\n", "original 3\n", "original 4\n"}) {
    std::string text = to_text(journal);
    text.erase(text.find(missing), missing.size());
    const auto read = governor::parse_journal(text, "j");
    ASSERT_FALSE(read) << missing;
    EXPECT_EQ(read.error().code, Code::corrupt);
  }
}

}  // namespace
}  // namespace diapause::governor_test
