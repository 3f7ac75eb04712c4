#include "energy/node_share.hpp"

#include <gtest/gtest.h>

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
    return ProcessorTimeReader::open(sys::real_kernel(), scratch_.path(), std::move(processes));
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

TEST_F(ProcessorTimesOfANode, AreUnknownWhereAProcessCannotBeSeen) {
  constexpr std::int64_t kNoProcess = (1 << 22) + 1;  // ids are at most 2^22
  EXPECT_FALSE(open({sys::process_id(), kNoProcess}).has_value());
  EXPECT_FALSE(open({0}).has_value());
  EXPECT_FALSE(
      ProcessorTimeReader::open(sys::real_kernel(), scratch_.path() / "none", {}).has_value());
}

}  // namespace
}  // namespace diapause::energy
