#include "energy/node_share.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "support/scratch_directory.hpp"
#include "support/value_of.hpp"
#include "sys/process.hpp"

namespace diapause::energy {
namespace {

TEST(NodeShare, IsThatOfTheProcessorTimeThatWasUsed) {
  EXPECT_DOUBLE_EQ(share_of({30, 10}).share, 0.75);
  EXPECT_DOUBLE_EQ(share_of({0, 10}).share, 0);
  EXPECT_DOUBLE_EQ(share_of({10, 0}).share, 1);
  EXPECT_DOUBLE_EQ(share_of({0, 0}).share, 1);
}

TEST(NodeShare, OfAllJobsAddUpToTheNode) {
  EXPECT_DOUBLE_EQ(share_of({30, 70}).share + share_of({50, 50}).share + share_of({20, 80}).share,
                   1);
}

TEST(NodeShare, IsSureWhereTheNodeIsNotShared) {
  EXPECT_EQ(share_of({10, 0}).off, 0);
  EXPECT_EQ(share_of({0, 10}).off, 0);
}

TEST(NodeShare, CoversProgramsWhoseProcessorsDrawTwiceAsMuch) {
  for (const double share : {0.01, 0.2, 0.5, 0.7, 0.99}) {
    const NodeShare told = share_of({share, 1 - share});
    for (const double ratio : {0.5, 0.8, 1.0, 1.5, 2.0}) {
      const double truth = ratio * share / (ratio * share + 1 - share);
      EXPECT_LE(std::abs(truth - told.share), told.off + 1e-12) << share << " " << ratio;
    }
    EXPECT_LT(told.off, 0.18);
  }
}

class ProcessorTimesOfANode : public testing::Test {
 protected:
  ProcessorTimesOfANode() { tell(1000); }
  void tell(std::uint64_t user_ticks) {
    std::filesystem::create_directories(scratch_.path() / "proc");
    std::ofstream(scratch_.path() / "proc/stat")
        << "cpu  " << user_ticks << " 0 500 8000 500 0 0 70 0 0\n";
  }
  Result<ProcessorTimeReader> open(std::vector<std::int64_t> processes) {
    return ProcessorTimeReader::open(sys::real_kernel(), scratch_.path(),
                                     {std::move(processes), false});
  }
  const test_support::ScratchDirectory scratch_;
};

TEST_F(ProcessorTimesOfANode, AreOthersWhereTheJobHasNotUsedThem) {
  auto reader = test_support::value_of(open({sys::process_id()}));
  double spent_s = 0;
  const double start_s = sys::processor_s();
  while (spent_s < 0.05) spent_s = sys::processor_s() - start_s;
  tell(1000 + 100 * 100);  // 100 s at 100 ticks a second
  const ProcessorTimes times = test_support::value_of(reader.since_last());
  EXPECT_GE(times.job_s, 0.05);
  EXPECT_NEAR(times.job_s + times.others_s, 100, 1e-6);
}

TEST_F(ProcessorTimesOfANode, AreNeverLessThanNothing) {
  auto reader = test_support::value_of(open({sys::process_id()}));
  const double start_s = sys::processor_s();
  while (sys::processor_s() - start_s < 0.02) {
  }
  EXPECT_EQ(test_support::value_of(reader.since_last()).others_s, 0);  // no tick has passed
}

// Returns a child that has used so much processor time, and its own child has, too. It waits until
// the test has closed the pipe to `go_on`, and then for its child.
pid_t start_family(double seconds, const std::array<int, 2>& ready,
                   const std::array<int, 2>& go_on) {
  const auto work = [&] {
    while (sys::processor_s_of(sys::process_id()).value_or(seconds) < seconds) {
    }
    ::close(go_on[1]);
    char byte = 0;
    if (::write(ready[1], &byte, 1) != 1 || ::read(go_on[0], &byte, 1) != 0) ::_exit(1);
  };
  const pid_t child = ::fork();
  if (child != 0) return child;
  const pid_t grandchild = ::fork();
  work();
  if (grandchild > 0) ::waitpid(grandchild, nullptr, 0);
  ::_exit(0);
}

TEST_F(ProcessorTimesOfANode, HaveThoseOfDescendantsWhereAllOfThemAreTheJob) {
  constexpr double kSeconds = 0.06;
  auto reader = test_support::value_of(
      ProcessorTimeReader::open(sys::real_kernel(), scratch_.path(), {{sys::process_id()}, true}));
  std::array<int, 2> ready{}, go_on{};
  ASSERT_EQ(::pipe(ready.data()) | ::pipe(go_on.data()), 0);
  const pid_t child = start_family(kSeconds, ready, go_on);
  std::array<char, 2> bytes{};
  for (char& byte : bytes) ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const double alive_s = test_support::value_of(reader.since_last()).job_s;
  EXPECT_GE(alive_s, 2 * kSeconds - 0.04);  // each process is counted in ticks of 10 ms
  ::close(go_on[1]);
  ::waitpid(child, nullptr, 0);
  const double ended_s = test_support::value_of(reader.since_last()).job_s;
  EXPECT_GE(alive_s + ended_s, 2 * kSeconds - 0.04);
  EXPECT_LT(ended_s, alive_s);  // the time of those that have ended counts once
  for (const int end : {ready[0], ready[1], go_on[0]}) ::close(end);
}

TEST_F(ProcessorTimesOfANode, AreUnknownWhereAProcessCannotBeSeen) {
  constexpr std::int64_t kNoProcess = (1 << 22) + 1;  // ids are at most 2^22
  EXPECT_FALSE(open({sys::process_id(), kNoProcess}).has_value());
  EXPECT_FALSE(open({0}).has_value());
  EXPECT_FALSE(
      ProcessorTimeReader::open(sys::real_kernel(), scratch_.path() / "none", {}).has_value());
  EXPECT_FALSE(ProcessorTimeReader::open(sys::real_kernel(), scratch_.path(), {{kNoProcess}, true})
                   .has_value());
}

}  // namespace
}  // namespace diapause::energy
