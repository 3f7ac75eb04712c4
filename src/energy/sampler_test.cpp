#include "energy/sampler.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "sys/process.hpp"

namespace diapause::energy {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A machine with one package, whose counter somebody drives at 100 W.
class Machine : public testing::Test {
 protected:
  Machine() {
    std::filesystem::create_directories(root_ / "sys/class/powercap/intel-rapl:0");
    write("name", "package-0");
    write("max_energy_range_uj", "262143328850");
    write("energy_uj", "1000000");
  }
  ~Machine() override {
    stop_driver();
    std::filesystem::remove_all(root_);
  }
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
        counter.seekp(0);
        counter << 1000000000 + static_cast<std::uint64_t>((sys::monotonic_s() - begin_s) * 100e6) << std::flush;
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
    auto sampler = Sampler::start(settings, sys::real_kernel());
    EXPECT_TRUE(sampler.has_value());
    return std::move(*sampler);
  }

  const std::filesystem::path root_ =
      std::filesystem::temp_directory_path() / ("sampler-" + std::to_string(sys::process_id()));
  std::thread driver_;
  std::atomic<bool> ends_{false};
};

TEST_F(Machine, EnergyBetweenTwoMomentsIsWhatTheCounterSaysItIs) {
  drive();
  const auto sampler = start({"powercap"});
  ASSERT_THAT(sampler->domains(), SizeIs(1));
  const double from_s = sys::monotonic_s();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const double to_s = sys::monotonic_s();
  const Usage usage = sampler->between(from_s, to_s);
  EXPECT_FALSE(usage.total.has_gap());
  // The driver may be held up for longer than it sleeps: what it has shown late is not the sampler's error.
  EXPECT_NEAR(usage.total.joules, 100 * (to_s - from_s), 5);
  EXPECT_EQ(sampler->total().name, "package");
}

TEST_F(Machine, TheEnergyUntilAMarkIsKnownBetterThanThatBetweenSamples) {
  drive();
  const auto sampler = start({"powercap"}, 60'000);
  ASSERT_THAT(sampler->domains(), SizeIs(1));
  const double from_s = sys::monotonic_s();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const double to_s = sys::monotonic_s();
  sampler->mark();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  // Were there no sample between from_s and now, 20 J in 0.2 s might as well be 0 or 40.
  EXPECT_LT(sampler->between(from_s, to_s).total.uncertainty_j, 10);
}

TEST_F(Machine, CounterThatStandsStillIsNoSource) {
  const auto sampler = start({"powercap"});
  EXPECT_THAT(sampler->domains(), IsEmpty());
  ASSERT_THAT(sampler->obstacles(), SizeIs(1));
  EXPECT_THAT(sampler->obstacles()[0].why, HasSubstr("stands still at 1000000"));
  EXPECT_EQ(sampler->since_start().total.covered_s, 0);
}

TEST_F(Machine, FutureIsAGap) {
  drive();
  const auto sampler = start({"powercap"});
  const double now_s = sys::monotonic_s();
  EXPECT_GT(sampler->between(now_s - 0.01, now_s + 100).total.gap_s, 50);
}

// What is taken to go on between two readings of a slow sensor turns out to have been too much when power falls.
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
    const Point now = sampler->now().front();
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
  const std::string path = testing::TempDir() + "idle-" + std::to_string(sys::process_id()) + ".toml";
  std::ofstream(path) << R"(
name = "idle"
machine = "none"
[domain.dram]
idle_w = { value = 0, source = "a test" }
busy_w = { value = 0, source = "a test" }
)";
  config::EnergySettings settings;
  settings.meters = {"model"};
  settings.profile = path;
  const auto sampler = Sampler::start(settings, sys::real_kernel());
  ASSERT_TRUE(sampler.has_value()) << sampler.error().message;
  ASSERT_THAT((*sampler)->domains(), SizeIs(2));  // the node and its memory
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
