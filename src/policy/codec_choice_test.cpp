#include "policy/codec_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace diapause::policy {
namespace {

using testing::HasSubstr;

constexpr double kGb = 1e9;

const std::vector<CodecSample> kSamples = {{"shuffle+lz4", 1.12, 1.9 * kGb},
                                           {"shuffle+zstd", 1.16, 0.84 * kGb},
                                           {"lattice", 8, 0.8 * kGb}};

std::string chosen(CodecGoal goal, const std::vector<CodecSample>& samples,
                   const StorageFacts& storage) {
  const CodecChoice choice = choose_codec(goal, samples, storage);
  return choice.codec ? samples[*choice.codec].name : "none";
}

TEST(CodecChoice, CompressesWhereStorageIsSlowAndNotWhereItIsFast) {
  EXPECT_EQ(chosen(CodecGoal::time, kSamples, {0.1 * kGb, {}, {}}), "lattice");
  EXPECT_EQ(chosen(CodecGoal::time, kSamples, {5 * kGb, {}, {}}), "none");
}

TEST(CodecChoice, TakesTheFasterCodecWhereStorageIsFasterToo) {
  const std::vector<CodecSample> lossless = {kSamples[0], kSamples[1]};
  EXPECT_EQ(chosen(CodecGoal::time, lossless, {0.01 * kGb, {}, {}}), "shuffle+zstd");
  EXPECT_EQ(chosen(CodecGoal::time, lossless, {0.09 * kGb, {}, {}}), "shuffle+lz4");
}

TEST(CodecChoice, ChangesAtTheBreakEvenButForAMargin) {
  const std::vector<CodecSample> one = {kSamples[2]};
  const double rate = break_even_bytes_per_s(one[0], CodecGoal::time, {});
  EXPECT_NEAR(rate, 0.7 * kGb, 1e-3);
  EXPECT_EQ(chosen(CodecGoal::time, one, {1.01 * rate, {}, {}}), "none");
  EXPECT_EQ(chosen(CodecGoal::time, one, {0.9 * rate, {}, {}}), "lattice");
}

TEST(CodecChoice, MayCostEnergyWhereItSavesTime) {
  const StorageFacts storage{0.5 * kGb, 200, 100};
  EXPECT_EQ(chosen(CodecGoal::time, kSamples, storage), "lattice");
  EXPECT_EQ(chosen(CodecGoal::energy, kSamples, storage), "none");
  EXPECT_EQ(chosen(CodecGoal::energy, kSamples, {0.5 * kGb, 110, 100}), "lattice");
}

TEST(CodecChoice, StoresAsItIsWhatNothingIsKnownOf) {
  EXPECT_THAT(choose_codec(CodecGoal::time, kSamples, {}).reason,
              HasSubstr("has not been measured"));
  EXPECT_EQ(chosen(CodecGoal::time, kSamples, {0.0, {}, {}}), "none");
  EXPECT_EQ(chosen(CodecGoal::energy, kSamples, {0.1 * kGb, {}, 100}), "none");
  EXPECT_EQ(chosen(CodecGoal::time, {}, {0.1 * kGb, {}, {}}), "none");
}

TEST(CodecChoice, IgnoresCodecsThatGainNothingOrWereNotMeasured) {
  const std::vector<CodecSample> useless = {{"a", 0.9, kGb}, {"b", 2, 0}, {"c", std::nan(""), kGb}};
  EXPECT_EQ(chosen(CodecGoal::time, useless, {0.1 * kGb, {}, {}}), "none");
  EXPECT_EQ(break_even_bytes_per_s(useless[0], CodecGoal::time, {}), 0);
}

TEST(CodecChoice, SaysWithWhichPowersItHasReckoned) {
  EXPECT_THAT(choose_codec(CodecGoal::energy, kSamples, {0.1 * kGb, 110, 100, "measured"}).reason,
              HasSubstr("a GB takes 1e+03 J as it is, at 0.10 GB/s, writing at 100 W and "
                        "compressing at 110 W (measured);"));
  EXPECT_EQ(choose_codec(CodecGoal::energy, kSamples, {0.1 * kGb, {}, {}, "no meter"}).reason,
            "not compressed: what compressing and writing draw is not known: no meter");
}

TEST(CodecChoice, SaysItsNumbers) {
  const std::string reason = choose_codec(CodecGoal::time, kSamples, {0.1 * kGb, {}, {}}).reason;
  EXPECT_EQ(reason,
            "lattice: a GB takes 10 s as it is, at 0.10 GB/s; shuffle+lz4 9.45 s (ratio 1.12 at "
            "1.90 GB/s, saves below 0.20 "
            "GB/s); shuffle+zstd 9.81 s (ratio 1.16 at 0.84 GB/s, saves below 0.12 GB/s); lattice "
            "2.5 s (ratio 8.00 at 0.80 "
            "GB/s, saves below 0.70 GB/s)");
}

}  // namespace
}  // namespace diapause::policy
