#include "energy/sampler.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "support/scratch_directory.hpp"
#include "support/value_of.hpp"
#include "sys/process.hpp"

namespace diapause::energy {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// The machine has one package, whose counter a thread drives at 100 W.
class Machine : public testing::Test {
 protected:
  Machine() {
    std::filesystem::create_directories(root_ / "sys/class/powercap/intel-rapl:0");
    write("name", "package-0");
    write("max_energy_range_uj", "262143328850");
    write("energy_uj", "1000000");
  }
  ~Machine() override { stop_driver(); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  void write(const std::string& file, const std::string& text) {
    const auto path = root_ / "sys/class/powercap/intel-rapl:0" / file;
    std::ofstream(path.string() + ".new") << text << "\n";
    std::filesystem::rename(path.string() + ".new", path);
  }
  void drive() {
    driver_ = std::thread([this] {
      const auto path = root_ / "sys/class/powercap/intel-rapl:0/energy_uj";
      std::fstream counter(path, std::ios::in | std::ios::out);  // the file is never empty
      const double begin_s = sys::monotonic_s();
      while (!ends_) {
        const auto more_uj = static_cast<std::uint64_t>((sys::monotonic_s() - begin_s) * 100e6);
        next_j_ = static_cast<double>(more_uj) / 1e6;
        counter.seekp(0);
        counter << 1000000000 + more_uj << std::flush;
        shown_j_ = next_j_.load();
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    });
  }
  void stop_driver() {
    ends_ = true;
    if (driver_.joinable()) driver_.join();
  }
  std::unique_ptr<Sampler> start(std::vector<std::string> meters, std::uint32_t period_ms = 10) {
    config::EnergySettings settings;
    settings.meters = std::move(meters);
    settings.period_ms = period_ms;
    settings.root = root_;
    return test_support::value_of(Sampler::start(settings, sys::real_kernel()));
  }

  const test_support::ScratchDirectory scratch_;
  const std::filesystem::path& root_ = scratch_.path();
  // A moment, and the numbers between which the counter stood when the sampler read it, right
  // before and right after. They lie further apart the busier the machine is, so a test may ask for
  // no more than that.
  struct Moment {
    double time_s, least_j, most_j;
  };
  Moment moment(Sampler& sampler) const {
    const double least_j = shown_j_;
    (void)sampler.now();
    const double time_s = sys::monotonic_s();
    (void)sampler.now();
    return {time_s, least_j, next_j_};
  }

  std::thread driver_;
  std::atomic<bool> ends_{false};
  std::atomic<double> next_j_{0},
      shown_j_{0};  // joules since the beginning: about to be written, and written
};

TEST_F(Machine, EnergyBetweenTwoMomentsIsWhatTheCounterSaysItIs) {
  drive();
  const auto sampler = start({"powercap"});
  ASSERT_THAT(sampler->domains(), SizeIs(1));
  const Moment from = moment(*sampler);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const Moment to = moment(*sampler);
  const Amount total = sampler->between(from.time_s, to.time_s).total;
  constexpr double kOneCount_j = 1e-6;  // sums of counts are rounded
  EXPECT_GE(total.joules, to.least_j - from.most_j - kOneCount_j);
  EXPECT_LE(total.joules, to.most_j - from.least_j + kOneCount_j);
  EXPECT_DOUBLE_EQ(total.covered_s + total.gap_s, to.time_s - from.time_s);
  EXPECT_EQ(sampler->total().name, "package");
}

TEST_F(Machine, TheEnergyUntilAMarkIsKnownBetterThanThatBetweenSamples) {
  drive();
  const auto sampler = start({"powercap"}, 60'000);
  ASSERT_THAT(sampler->domains(), SizeIs(1));
  bool is_known_well = false;
  // A busy machine may take the sample late. Then the times are too short to tell, and longer ones
  // are tried.
  for (int ms = 200; ms <= 6400 && !is_known_well; ms *= 2) {
    const auto marked = [&] {
      const double now_s = sys::monotonic_s();
      sampler->mark();
      std::this_thread::sleep_for(std::chrono::milliseconds(ms));
      return now_s;
    };
    const double from_s = marked();
    const double to_s = marked();
    // Without a sample between from_s and now, the energy might as well be nothing or twice as
    // much.
    const Amount total = sampler->between(from_s, to_s).total;
    is_known_well = total.off.sampling_j < total.joules / 2;
  }
  EXPECT_TRUE(is_known_well);
}

TEST_F(Machine, CounterThatStandsStillIsNoSource) {
  const auto sampler = start({"powercap"});
  EXPECT_THAT(sampler->domains(), IsEmpty());
  ASSERT_THAT(sampler->obstacles(), SizeIs(1));
  EXPECT_THAT(sampler->obstacles()[0].why, HasSubstr("stands still at 1000000"));
  EXPECT_EQ(sampler->since_start().total.covered_s, 0);
}

TEST_F(Machine, WhoeverIsInAHurryWaitsForNoCounterToShowLife) {
  const auto sampler = start({"powercap"});
  sampler->hurry();
  drive();  // it would be found to be live
  EXPECT_THAT(sampler->domains(), IsEmpty());
  ASSERT_THAT(sampler->obstacles(), SizeIs(1));
  EXPECT_THAT(sampler->obstacles()[0].why, HasSubstr("stands still at"));
}

TEST_F(Machine, FutureIsAGap) {
  drive();
  const auto sampler = start({"powercap"});
  const double now_s = sys::monotonic_s();
  EXPECT_GT(sampler->between(now_s - 0.01, now_s + 100).total.gap_s, 50);
}

// A value that is taken to go on between two readings of a slow sensor turns out to have been too
// high when power falls.
TEST_F(Machine, WhatWasToldOfNowIsNeverTakenBack) {
  const auto sensor = root_ / "sys/class/hwmon/hwmon0";
  std::filesystem::create_directories(sensor);
  std::ofstream(sensor / "name") << "power_meter\n";
  std::ofstream(sensor / "power1_average_interval") << "200\n";
  std::ofstream(sensor / "power1_average") << "500000000\n";
  const auto sampler = start({"hwmon"});
  ASSERT_THAT(sampler->domains(), SizeIs(1));
  Point last;
  for (int i = 0; i < 60; ++i) {
    if (i == 20) std::ofstream(sensor / "power1_average") << "010000000\n";
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const Point now = sampler->now().points.front();
    EXPECT_GE(now.joules, last.joules);
    EXPECT_GE(now.covered_s, last.covered_s);
    last = now;
  }
}

TEST_F(Machine, MetersThatAreOffHaveNoDomains) {
  const auto sampler = start({"off"});
  EXPECT_THAT(sampler->domains(), IsEmpty());
  EXPECT_THAT(sampler->total().zones, IsEmpty());
}

TEST_F(Machine, AMeterThatWasAskedForAndIsNotThereIsNamed) {
  const auto sampler = start({"stream", "pm_counters"});
  ASSERT_THAT(sampler->obstacles(), SizeIs(2));
  EXPECT_EQ(sampler->obstacles()[0].source, "stream");
  EXPECT_EQ(sampler->obstacles()[1].source, "pm_counters");
}

TEST(Sampler, ModelsWhereNothingIsMeasured) {
  config::EnergySettings settings;
  const auto sampler = Sampler::start(settings, sys::real_kernel());
  ASSERT_TRUE(sampler.has_value());
  if ((*sampler)->total().kind == Kind::measured) GTEST_SKIP() << "this machine has counters";
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const Usage usage = (*sampler)->since_start();
  EXPECT_GT(usage.total.joules, 0);
  EXPECT_FALSE(usage.total.has_gap());
  EXPECT_EQ((*sampler)->domains()[0].source, "model generic");
}

TEST(Sampler, TakesAModelForASourceThatSaysNoPowerIsUsed) {
  const test_support::ScratchDirectory scratch;
  const std::string path = scratch.write("idle.toml", R"(
name = "idle"
machine = "none"
[domain.dram]
idle_w = { value = 0, source = "a test" }
busy_w = { value = 0, source = "a test" }
)");
  config::EnergySettings settings;
  settings.meters = {"model"};
  settings.profile = path;
  const auto sampler = Sampler::start(settings, sys::real_kernel());
  ASSERT_TRUE(sampler.has_value()) << sampler.error().message;
  ASSERT_THAT((*sampler)->domains(), SizeIs(1));  // memory; the profile has no rest of the node
  EXPECT_EQ((*sampler)->since_start().total.joules, 0);
}

TEST(Sampler, NamesTheMetersThereAreWhenOneIsUnknown) {
  config::EnergySettings settings;
  settings.meters = {"powercap", "rapl"};
  const auto sampler = Sampler::start(settings, sys::real_kernel());
  ASSERT_FALSE(sampler.has_value());
  EXPECT_EQ(sampler.error().code, Code::config);
  EXPECT_THAT(sampler.error().message, HasSubstr("no meter 'rapl'"));
  EXPECT_THAT(sampler.error().message, HasSubstr("powercap"));
}

TEST(Sampler, NamesTheProfilesThereAreWhenOneIsUnknown) {
  config::EnergySettings settings;
  settings.profile = "/nowhere/at.all";
  const auto sampler = Sampler::start(settings, sys::real_kernel());
  ASSERT_FALSE(sampler.has_value());
  EXPECT_THAT(sampler.error().message, testing::ContainsRegex("built in are .*generic"));
}

TEST(Sampler, CanBeAskedByManyThreadsAtOnce) {
  config::EnergySettings settings;
  settings.meters = {"model"};
  settings.period_ms = 1;
  const auto sampler = Sampler::start(settings, sys::real_kernel());
  ASSERT_TRUE(sampler.has_value());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 50; ++k) {
        (*sampler)->moved(1000);
        EXPECT_GE((*sampler)->since_start().total.joules, 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace diapause::energy
