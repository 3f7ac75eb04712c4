// Tests what the step of level 4 draws. It is measured where there is a counter, and taken from the
// profile elsewhere. It also tests what is decided by it.
#include "engine/accounting/step_power.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>

#include "engine/cluster.hpp"
#include "engine/ledger_events.hpp"
#include "support/scratch_directory.hpp"
#include "support/value_of.hpp"

namespace diapause::engine {
namespace {

using nlohmann::json;
using test_support::Shape;
using ::testing::HasSubstr;

constexpr const char* kHotProcessors = R"(
name = "hot"
machine = "none"
[domain.package]
idle_w = { value = 100, source = "a test" }
busy_w = { value = 1000, source = "a test" }
)";

// A counter that says 50 W for a minute.
constexpr const char* kTrace =
    R"({"domains":[{"domain":"node","kind":"measured","part":"","resolution_j":1e-06,"source":"a test","update_s":0.001}],)"
    R"("host":"n1","period_s":0.005,"schema":1,"started_unix_s":0,"total":{"domains":[0],"kind":"measured","name":"node"},)"
    R"("what":"diapause power trace"})";

class StepPowerTest : public ::testing::Test {
 protected:
  StepPowerTest() {
    codec().method = config::CodecMethod::automatic;
    codec().goal = config::CodecGoal::energy;
    context_.topology.node_of_rank = {0};
    energy().meters = {"model"};
    energy().period_ms = 5;
    energy().profile = scratch_.write("hot.toml", kHotProcessors);
  }
  config::CodecSettings& codec() { return context_.settings.codec; }
  config::EnergySettings& energy() { return context_.settings.energy; }
  StepPower open() {
    sampler_ = test_support::value_of(energy::Sampler::start(energy(), sys::real_kernel()));
    return StepPower(context_, sampler_.get());
  }

  Context context_{sys::real_kernel(), nullptr, {}, {}, {}, {}, {}, {}};
  const test_support::ScratchDirectory scratch_;
  std::unique_ptr<energy::Sampler> sampler_;
};

// In the call: an idle machine, and of its processors as many busy as there are threads.
TEST_F(StepPowerTest, IsModelledByProcessorsThatWaitOrCompress) {
  StepPower power = open();
  GlobalStep step{1, 0, 1, {0.25, 0}};
  power.learn(step);
  const Draw draw = power.draw();
  const double of_one = *draw.compress_w - 100;
  EXPECT_GT(of_one, 0);
  EXPECT_NEAR(*draw.write_w, 100 + of_one / 4, 1e-9);
  EXPECT_EQ(draw.source, "modelled by the profile 'hot'");
}

// The machine would be idle, or not, all the same.
TEST_F(StepPowerTest, BehindTheProgramIsOnlyWhatTheStepAdds) {
  context_.topology.by_node = true;
  StepPower power = open();
  power.learn({1, 0, 1, {0.25, 0}});
  const Draw draw = power.draw();
  EXPECT_NEAR(*draw.write_w, *draw.compress_w / 4, 1e-9);
}

TEST_F(StepPowerTest, IsMeasuredWhereThereIsACounter) {
  std::string trace = std::string(kTrace) + "\n";
  for (int i = 1; i < 12000; ++i) {
    const double t = 0.005 * i;
    trace += "{\"c\":[" + std::to_string(t) + "],\"j\":[" + std::to_string(50 * t) +
             "],\"t\":" + std::to_string(t) + "}\n";
  }
  energy().meters = {"replay"};
  energy().trace = scratch_.write("trace.jsonl", trace);
  StepPower power = open();
  // The longer a step, the better it is known, also where the machine is so busy that samples are
  // rare.
  const double start_s = sampler_->started_s();
  double now_s = start_s;
  while (sampler_->between(start_s, now_s).total.off.sampling_j > 1 || now_s < start_s + 0.2)
    now_s = sys::monotonic_s();
  power.learn({1, start_s, now_s, {}});
  EXPECT_NEAR(*power.draw().write_w, 50, 1);
  EXPECT_GT(*power.draw().compress_w, 51);
  EXPECT_THAT(power.draw().source,
              HasSubstr("writing measured: node, and how much more compressing draws modelled"));
  power.learn({1, start_s, now_s, {}, Stored::compressed, (now_s - start_s) * 2 / 3});
  EXPECT_NEAR(*power.draw().compress_w, 50, 2);
  EXPECT_EQ(power.draw().source, "measured: node");
}

TEST_F(StepPowerTest, IsNotKnownWithoutAMeter) {
  energy().meters = {"off"};
  EXPECT_FALSE(open().draw().write_w);
  EXPECT_THAT(StepPower(context_, nullptr).draw().source, HasSubstr("not measured"));
}

// Takes two versions of numbers of which only one byte in eight is not noise.
void take_two(library::Engine& engine) {
  std::vector<double> values(600'000);
  std::mt19937_64 random(1);
  for (double& value : values) value = 1 + std::ldexp(static_cast<double>(random() >> 12), -52);
  format::Region region;
  region.name = "noise";
  region.type = format::ElementType::float64;
  region.element_bytes = 8;
  region.count = values.size();
  EXPECT_TRUE(engine.protect({region, reinterpret_cast<std::byte*>(values.data())}));
  library::CheckpointInfo info;
  for (const std::uint64_t version : {1, 2}) {
    EXPECT_TRUE(engine.checkpoint(version, 4, info));
    EXPECT_TRUE(engine.wait(version, 4, 60));
  }
  EXPECT_TRUE(engine.close(60));
}

// Returns how these went to storage that is so slow that even a busy processor compresses faster.
// They go in the background, where waiting for the storage costs nothing and compressing does.
std::vector<json> chosen_for(const std::string& goal) {
  Shape shape;
  shape.ranks = 1;
  shape.ranks_per_node = 1;
  shape.config =
      "[async]\nmode = \"thread\"\nflush_mib_s = 6\n[codec]\nmethod = \"auto\"\ngoal = \"" + goal +
      "\"\n";
  const test_support::ScratchDirectory scratch;
  const std::string profile = scratch.write("hot.toml", kHotProcessors);
  shape.adjust = [profile](library::OpenRequest& request, std::uint32_t) {
    request.environment.emplace_back("DIAPAUSE_ENERGY_METERS", "model");
    request.environment.emplace_back("DIAPAUSE_ENERGY_PROFILE", profile);
  };
  test_support::VolatileDisk disk;
  EXPECT_TRUE(test_support::run_job(
      disk, shape, [](library::Engine& engine, auto&, std::uint32_t) { take_two(engine); }));
  std::vector<json> chosen;
  for (const json& line : test_support::ledger_events(disk, "compression"))
    chosen.push_back(line["regions"][0]);
  return chosen;
}

TEST(CodecGoal, DecidesWhetherSlowStorageIsCompressedFor) {
  if (test_support::in_background()) GTEST_SKIP() << "sets its own mode";
  // Samples that were taken while others had the processor say, rightly, that compressing is slow.
  bool is_compressed = false;
  for (int attempt = 0; attempt < 20 && !is_compressed; ++attempt) {
    const std::vector<json> for_time = chosen_for("time");
    ASSERT_EQ(for_time.size(), 2u);
    is_compressed = for_time[1]["codec"] != "raw";
  }
  EXPECT_TRUE(is_compressed);
  const std::vector<json> for_energy = chosen_for("energy");
  ASSERT_EQ(for_energy.size(), 2u);
  EXPECT_EQ(for_energy[1]["codec"], "raw") << for_energy[1]["reason"];
  EXPECT_THAT(for_energy[1]["reason"].get<std::string>(),
              HasSubstr("(modelled by the profile 'hot')"));
}

}  // namespace
}  // namespace diapause::engine
