// Tests what codec.method = "auto" decides, from what it is told of earlier versions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/encoding/encoding_plan.hpp"

namespace diapause::engine {
namespace {

using ::testing::HasSubstr;

// Returns what `auto` decides for 4 MiB of a smooth field.
EncodingPlan decide(EncodingPlanner& planner) {
  std::vector<double> values(512 * 1024);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i / 4) * 0.25;
  format::Region region;
  region.name = "field";
  region.type = format::ElementType::float64;
  region.element_bytes = 8;
  region.count = values.size();
  const auto read = [&](std::size_t, std::uint64_t offset,
                        MutableBytes scratch) -> Result<ByteView> {
    return std::as_bytes(std::span(values)).subspan(offset, scratch.size());
  };
  return planner.plan({{region}}, read, Loss::allowed);
}

constexpr double k100MiB = 100.0 * kMiB;

// Returns the step of 100 MiB on their way to the global tier.
GlobalStep step_of(double seconds, Stored how = Stored::as_it_is) {
  return {100 * kMiB, 0, seconds, {}, how};
}

EncodingPlan decided_after(const GlobalStep& step) {
  EncodingPlanner planner({config::CodecMethod::automatic});
  planner.learn(step);
  return decide(planner);
}

// Decides for storage that takes so many bytes a second; 0 means that this is not known.
EncodingPlan decided_at(double storage_bytes_per_s) {
  return decided_after(step_of(storage_bytes_per_s > 0 ? k100MiB / storage_bytes_per_s : 0));
}

TEST(AutoCodec, CompressesForSlowStorageOnly) {
  EXPECT_TRUE(decided_at(1e6).has_work());
  EXPECT_FALSE(decided_at(1e12).has_work());
}

TEST(AutoCodec, StoresAsItIsUntilItKnowsTheStorage) {
  const EncodingPlan plan = decided_at(0);
  EXPECT_FALSE(plan.has_work());
  EXPECT_THAT(plan.choices[0].reason, HasSubstr("has not been measured yet"));
}

// Storage that is memory, beside so much else that the step waits for a processor most of the time.
TEST(AutoCodec, DoesNotTakeABusyProcessorForSlowStorage) {
  GlobalStep step = step_of(10);
  step.processor = {0.01, 9.99};
  const EncodingPlan plan = decided_after(step);
  EXPECT_FALSE(plan.has_work());
  EXPECT_THAT(plan.choices[0].reason, HasSubstr("1000.0 times slower than alone"));
}

TEST(AutoCodec, CompressesForSlowStorageBesideABusyProgramToo) {
  GlobalStep step = step_of(1000);
  step.processor = {0.1, 0.9};
  EXPECT_TRUE(decided_after(step).has_work());
}

TEST(AutoCodec, NeverCompressesForMemory) {
  EncodingPlanner planner({config::CodecMethod::automatic});
  planner.learn(step_of(1000));
  planner.begin_version({.global_is_memory = true});
  const EncodingPlan plan = decide(planner);
  EXPECT_FALSE(plan.has_work());
  EXPECT_THAT(plan.choices[0].reason, HasSubstr("lies in memory"));
}

// Decides by joules, for storage for which compressing saves time.
EncodingPlan decided_by_joules(const Draw& draw) {
  EncodingPlanner planner(
      {.method = config::CodecMethod::automatic, .goal = config::CodecGoal::energy});
  planner.learn(step_of(10));
  planner.begin_version({.draw = draw});
  return decide(planner);
}

TEST(AutoCodec, CompressesByJoulesUnlessACodecDrawsFarMoreThanWriting) {
  EXPECT_TRUE(decided_by_joules({110, 100, "measured"}).has_work());
  const EncodingPlan plan = decided_by_joules({1e6, 1, "measured"});
  EXPECT_FALSE(plan.has_work());
  EXPECT_THAT(plan.choices[0].reason, HasSubstr("compressing at 1e+06 W (measured)"));
}

TEST(AutoCodec, StoresAsItIsByJoulesThatNobodyKnows) {
  const EncodingPlan plan = decided_by_joules({{}, {}, "there is no meter"});
  EXPECT_FALSE(plan.has_work());
  EXPECT_THAT(plan.choices[0].reason, HasSubstr("there is no meter"));
}

TEST(AutoCodec, SaysWhatItHasReckonedWith) {
  EXPECT_THAT(decided_at(1e6).choices[0].reason, HasSubstr("saves below"));
}

TEST(AutoCodec, DoesNotRepeatWhatTookLonger) {
  EncodingPlanner planner({config::CodecMethod::automatic});
  planner.learn(step_of(100));
  EXPECT_TRUE(decide(planner).has_work());
  planner.learn(step_of(120, Stored::compressed));
  EXPECT_FALSE(decide(planner).has_work());
  EXPECT_THAT(decide(planner).choices[0].reason, HasSubstr("as it is"));
  for (int version = 0; version < 10; ++version) planner.begin_version({});
  EXPECT_TRUE(decide(planner).has_work());
}

// Returns how often a planner reads a region to decide on it, version after version.
int reads_of(int versions, codec::CodecId allowed, const Status& readable) {
  EncodingPlanner planner({config::CodecMethod::automatic});
  planner.learn(step_of(100));
  format::Region region;
  region.name = "field";
  region.type = format::ElementType::float64;
  region.element_bytes = 8;
  region.count = 512 * 1024;
  region.compression = {static_cast<std::uint32_t>(allowed), 1e-300};
  int reads = 0;
  const auto read = [&](std::size_t, std::uint64_t, MutableBytes scratch) -> Result<ByteView> {
    ++reads;
    std::fill(scratch.begin(), scratch.end(), std::byte{64});
    DIAPAUSE_TRY(readable);
    return ByteView(scratch);
  };
  for (int i = 0; i < versions; ++i) {
    planner.begin_version({});
    (void)planner.plan({{region}}, read, Loss::allowed);
  }
  return reads;
}

TEST(AutoCodec, DoesNotSampleAgainWhatACodecGaveUpOn) {
  const auto unknown = static_cast<codec::CodecId>(99);
  EXPECT_EQ(reads_of(10, unknown, {}), 1);
  EXPECT_EQ(reads_of(11, unknown, {}), 2);
}

TEST(AutoCodec, TriesAgainToSampleWhatCouldNotBeRead) {
  EXPECT_EQ(reads_of(3, codec::CodecId::lattice, fail(Code::io, "not now")), 3);
}

TEST(AutoCodec, MeasuresAnewWhenTheStorageHasChanged) {
  EncodingPlanner planner({config::CodecMethod::automatic});
  planner.learn(step_of(100));
  planner.learn(step_of(50, Stored::compressed));
  EXPECT_TRUE(decide(planner).has_work());
  planner.learn(step_of(5, Stored::compressed));
  EXPECT_THAT(decide(planner).choices[0].reason, HasSubstr("has not been measured yet"));
}

}  // namespace
}  // namespace diapause::engine
