// The account of energy: which phase of which checkpoint or restart has used what, and the program
// the rest.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <numeric>
#include <set>
#include <thread>

#include "engine/accounting/background_worker.hpp"
#include "engine/cluster.hpp"
#include "engine/ledger_events.hpp"
#include "support/scratch_directory.hpp"
#include "sys/process.hpp"

namespace diapause::test_support {
namespace {

using nlohmann::json;

constexpr const char* kMemoryOnly = R"(
name = "memory-only"
machine = "none"
[domain.dram]
idle_w = { value = 0, source = "a test" }
busy_w = { value = 0, source = "a test" }
j_per_gb = { value = 1e6, source = "a test" }
)";

// Energy whose owner is unknown is the program's.
double joules_of(const json& part, const std::string& domain) {
  const json& joules = part.at("joules");
  return joules.contains(domain) && !joules[domain].is_null() ? joules[domain].get<double>() : 0;
}

class Accounting : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (in_background()) GTEST_SKIP() << "sets its own mode";
    const std::string mode = GetParam();
    shape_.ranks = 4;
    shape_.config = "[async]\nmode = \"" + (mode == "relayed" ? "thread" : mode) + "\"\n";
    if (mode == "relayed") shape_.threads = ThreadJob::Threads::one;
    with_meters("model");
  }
  void with_meters(const std::string& meters) {
    shape_.adjust = [meters](library::OpenRequest& request, std::uint32_t) {
      request.environment.emplace_back("DIAPAUSE_ENERGY_METERS", meters);
      request.environment.emplace_back("DIAPAUSE_ENERGY_PERIOD_MS", "5");
    };
  }
  // Seconds of a phase of that version.
  double seconds_of(std::uint64_t version, const std::string& name) const {
    double seconds = 0;
    for (const json& line : ledger_events(disk_, "energy")) {
      for (const json& phase : line["phases"]) {
        if (phase["version"] == version && phase["phase"] == name)
          seconds += phase["seconds"].get<double>();
      }
    }
    return seconds;
  }
  // A job of two checkpoints of level 4, one soon after the other.
  void run_with_two_flushes() {
    ASSERT_TRUE(
        run_job(disk_, shape_, [&](library::Engine& engine, Program& program, std::uint32_t) {
          library::CheckpointInfo info;
          std::this_thread::sleep_for(
              std::chrono::milliseconds(100));  // the model has its first look at the node
          for (const std::uint64_t version : {1, 2}) {
            program.compute(version);
            EXPECT_TRUE(engine.checkpoint(version, 4, info));
          }
          EXPECT_TRUE(engine.close(60));
        }));
  }
  // A job of one checkpoint of each level, of which the last is restored.
  void run() {
    ASSERT_TRUE(
        run_job(disk_, shape_, [&](library::Engine& engine, Program& program, std::uint32_t) {
          library::CheckpointInfo info;
          std::this_thread::sleep_for(
              std::chrono::milliseconds(100));  // the model has its first look at the node
          for (int level = 1; level <= 4; ++level) {
            const auto version = static_cast<std::uint64_t>(level);
            program.compute(version);
            EXPECT_TRUE(engine.checkpoint(version, level, info));
            EXPECT_TRUE(info.level_reached == level || engine.wait(version, level, 60));
          }
          library::RestartInfo restart;
          EXPECT_TRUE(engine.restart_begin(library::Engine::kNewest, restart));
          EXPECT_TRUE(engine.restore({}));
          EXPECT_TRUE(engine.restart_end());
          EXPECT_TRUE(engine.close(60));
        }));
  }
  std::multiset<std::string> phases() const {
    std::multiset<std::string> found;
    for (const json& line : ledger_events(disk_, "energy")) {
      for (const json& phase : line["phases"]) {
        found.insert(std::to_string(phase["version"].get<int>()) + " " +
                     phase["phase"].get<std::string>());
      }
    }
    return found;
  }

  Shape shape_;
  VolatileDisk disk_;
};

TEST_P(Accounting, NamesEveryPhaseOfEveryVersion) {
  run();
  EXPECT_THAT(phases(), ::testing::IsSupersetOf({"1 capture", "1 keep", "1 publish", "2 partner",
                                                 "3 parity", "4 global", "4 inventory", "4 verify",
                                                 "4 fetch", "4 restore"}));
}

TEST_P(Accounting, TellsAtEveryLevelWhatPublishingTakes) {
  run();
  std::set<int> levels;
  for (const json& line : ledger_events(disk_, "energy")) {
    for (const json& phase : line["phases"]) {
      if (phase["phase"] == "publish") levels.insert(phase["level"].get<int>());
    }
  }
  EXPECT_EQ(levels, (std::set{1, 2, 3, 4}));
}

TEST_P(Accounting, TellsEncodingAndWritingApartAndTheyAddUpToTheirStep) {
  shape_.config += "[codec]\nmethod = \"lz4\"\n";
  shape_.elements = 50'000;
  // If there are several machines, the longest time counts, for each phase.
  shape_.ranks_per_node = shape_.ranks;
  ASSERT_TRUE(run_job(disk_, shape_, [&](library::Engine& engine, Program& program, std::uint32_t) {
    library::CheckpointInfo info;
    program.compute(1);
    EXPECT_TRUE(engine.checkpoint(1, 4, info));
    EXPECT_TRUE(engine.close(60));
  }));
  const json steps = ledger_events(disk_, "checkpoint").back()["phases"];
  EXPECT_GT(seconds_of(1, "encode"), 0);
  EXPECT_GT(seconds_of(1, "global"), 0);
  EXPECT_NEAR(seconds_of(1, "encode") + seconds_of(1, "global") + seconds_of(1, "publish"),
              steps["global"].get<double>() + steps["publish"].get<double>(), 1e-9);
}

TEST_P(Accounting, EncodesNothingUnlessItCompresses) {
  run();
  EXPECT_EQ(seconds_of(4, "encode"), 0);
}

TEST_P(Accounting, TheBytesOfAPhaseAreThoseOfAllRanks) {
  run();
  const json checkpoint = ledger_events(disk_, "checkpoint").front();
  const json energy = ledger_events(disk_, "energy").front();
  for (const json& phase : energy["phases"]) {
    if (phase["version"] != checkpoint["version"]) continue;
    EXPECT_EQ(phase["bytes"], checkpoint["bytes_total"]);
  }
}

TEST_P(Accounting, ThePartsOfARunAddUpToItsWhole) {
  run();
  const std::vector<json> lines = ledger_events(disk_, "energy");
  ASSERT_FALSE(lines.empty());
  for (const json& line : lines) {
    EXPECT_EQ(line["machines"], 2);
    EXPECT_EQ(line["sources"][0]["kind"], "modelled");
    for (const auto& [domain, whole] : line["whole"]["joules"].items()) {
      double sum = joules_of(line["program"], domain);
      for (const json& phase : line["phases"]) {
        sum += joules_of(phase, domain);
      }
      EXPECT_NEAR(sum, whole.get<double>(), 1e-6 + 1e-9 * whole.get<double>()) << domain;
    }
    EXPECT_GT(line["whole"]["joules"]["total"], 0.0);
  }
}

TEST_P(Accounting, LinesAreNumberedAndTellTheirMachinesAndTheBoundsOfDomains) {
  run();
  std::uint64_t number = 0;
  std::set<std::string> hosts;
  for (const json& line : ledger_events(disk_, "energy")) {
    EXPECT_EQ(line["number"], ++number);
    hosts.insert(line.at("hosts").get<std::string>());
    for (const auto& [domain, joules] : line["whole"]["joules"].items()) {
      if (domain == "total") continue;
      EXPECT_EQ(line["whole"]["uncertainty_of"].at(domain).size(), 3u) << domain;
      EXPECT_EQ(line["whole"]["ends_of"].at(domain).size(), 2u) << domain;
    }
  }
  EXPECT_GT(number, 0u);
  EXPECT_EQ(hosts.size(), 1u);
}

TEST_P(Accounting, TheLastLineOfAStartSaysSoAndNoOtherDoes) {
  run();
  const std::vector<json> lines = ledger_events(disk_, "energy");
  ASSERT_FALSE(lines.empty());
  for (const json& line : lines) EXPECT_EQ(line.contains("last"), &line == &lines.back());
  const std::vector<json> closed = ledger_events(disk_, "close");
  ASSERT_EQ(closed.size(), 1u);
  EXPECT_EQ(closed[0]["incarnation"], lines.back()["incarnation"]);
}

TEST_P(Accounting, ThePartOfTheJobIsNoMoreThanItsWhole) {
  run();
  double job_s = 0;
  for (const json& line : ledger_events(disk_, "energy")) {
    ASSERT_TRUE(line.contains("processors"));
    const json& processors = line["processors"];
    job_s += processors["job_s"].get<double>();
    EXPECT_LE(processors["others_most_s"], processors["others_s"]);
    EXPECT_GE(processors["job_j"], 0.0);
    EXPECT_LE(processors["job_j"].get<double>(),
              line["whole"]["joules"]["total"].get<double>() * (1 + 1e-9));
  }
  EXPECT_GT(job_s, 0);
}

// Putting lost redundancy back is a checkpoint within the restart, which ends a period of the
// energy account.
TEST_P(Accounting, ARestartIsOnTheLineOfItsTime) {
  ASSERT_TRUE(run_job(disk_, shape_, [&](library::Engine& engine, Program& program, std::uint32_t) {
    library::CheckpointInfo info;
    program.compute(1);
    EXPECT_TRUE(engine.checkpoint(1, 2, info));
    EXPECT_TRUE(engine.close(60));
  }));
  disk_.erase(node_directory(disk_, "node1"));
  ASSERT_TRUE(restart_job(disk_, shape_).intact);
  ASSERT_TRUE(ledger_events(disk_, "restart").back()["healed"]);
  std::set<std::string> found;
  for (const json& line : ledger_events(disk_, "energy")) {
    for (const json& phase : line["phases"]) {
      if (line["incarnation"] != 2) continue;
      found.insert(phase["phase"]);
      EXPECT_GE(phase["start_unix_s"].get<double>(),
                line["time_unix_s"].get<double>() - line["seconds"].get<double>() - 1e-3)
          << phase["phase"];
    }
  }
  EXPECT_THAT(found, ::testing::IsSupersetOf({"inventory", "fetch", "restore", "partner"}));
}

// More than a message to the background holds.
TEST_P(Accounting, ARestartOfManyPhasesIsToldWhole) {
  constexpr int kTimes = 20;
  ASSERT_TRUE(run_job(disk_, shape_, [&](library::Engine& engine, Program& program, std::uint32_t) {
    library::CheckpointInfo info;
    program.compute(1);
    EXPECT_TRUE(engine.checkpoint(1, 1, info));
    library::RestartInfo restart;
    EXPECT_TRUE(engine.restart_begin(library::Engine::kNewest, restart));
    for (int i = 0; i < kTimes; ++i) EXPECT_TRUE(engine.restore({}));
    EXPECT_TRUE(engine.restart_end());
    EXPECT_TRUE(engine.close(60));
  }));
  EXPECT_EQ(phases().count("1 restore"), kTimes);
}

// A flush ends a period of the energy account when it is done, and captures meanwhile are told of
// later.
TEST_P(Accounting, ACaptureBesideAFlushIsNotFree) {
  if (GetParam() == std::string("off")) GTEST_SKIP() << "flushes in the call";
  shape_.config += "flush_mib_s = 0.04\n";
  ASSERT_NO_FATAL_FAILURE(run_with_two_flushes());
  double joules = 0;
  bool is_late = false;
  for (const json& line : ledger_events(disk_, "energy")) {
    for (const json& phase : line["phases"]) {
      if (phase["version"] != 2 || phase["phase"] != "capture") continue;
      joules += joules_of(phase, "total");
      is_late = phase["start_unix_s"].get<double>() <
                line["time_unix_s"].get<double>() - line["seconds"].get<double>();
    }
  }
  EXPECT_TRUE(is_late);
  EXPECT_GT(joules, 0);
}

// The line that ends with the flush is written while the program still is in the call that waits.
TEST_P(Accounting, AFlushThatTheProgramWaitsForHasTheEnergyOfTheWait) {
  if (GetParam() == std::string("off")) GTEST_SKIP() << "flushes in the call";
  shape_.config += "in_flight = 1\nflush_mib_s = 0.04\n";
  ASSERT_NO_FATAL_FAILURE(run_with_two_flushes());
  double flush_j = 0, wait_j = 0;
  for (const json& line : ledger_events(disk_, "energy")) {
    for (const json& phase : line["phases"]) {
      if (phase["version"] == 1 && phase["phase"] == "global") flush_j += joules_of(phase, "total");
      if (phase["version"] == 2 && phase["phase"] == "wait") wait_j += joules_of(phase, "total");
    }
  }
  EXPECT_GT(flush_j, wait_j);
}

// In a model of a machine that uses energy for nothing else.
TEST_P(Accounting, TheModelLearnsWhatCheckpointsMoveThroughMemory) {
  const test_support::ScratchDirectory scratch;
  const std::string path = scratch.write("memory-only.toml", kMemoryOnly);
  shape_.adjust = [path](library::OpenRequest& request, std::uint32_t) {
    request.environment.emplace_back("DIAPAUSE_ENERGY_METERS", "model");
    request.environment.emplace_back("DIAPAUSE_ENERGY_PERIOD_MS", "5");
    request.environment.emplace_back("DIAPAUSE_ENERGY_PROFILE", path);
  };
  ASSERT_TRUE(run_job(disk_, shape_, [&](library::Engine& engine, Program& program, std::uint32_t) {
    library::CheckpointInfo info;
    program.compute(1);
    std::this_thread::sleep_for(
        std::chrono::milliseconds(100));  // the model has its first look at the node
    EXPECT_TRUE(engine.checkpoint(1, 1, info));
    std::this_thread::sleep_for(std::chrono::milliseconds(250));  // it also looks now and then
    EXPECT_TRUE(engine.close(60));
  }));
  double joules = 0;
  for (const json& line : ledger_events(disk_, "energy"))
    joules += joules_of(line["whole"], "dram");
  EXPECT_GT(joules, 0);
}

TEST_P(Accounting, TellsOfAFileThatCannotBeRead) {
  std::atomic<int> told = 0;
  shape_.log = [&](Severity severity, const std::string& text) {
    if (severity == Severity::warning && text.find("/nowhere/power.csv") != text.npos) ++told;
  };
  shape_.adjust = [](library::OpenRequest& request, std::uint32_t) {
    request.environment.emplace_back("DIAPAUSE_ENERGY_STREAM", "/nowhere/power.csv");
  };
  run();
  EXPECT_GT(told, 0);
}

TEST_P(Accounting, WithoutAMeterThereAreTimesAndNoJoules) {
  with_meters("off");
  run();
  const std::vector<json> lines = ledger_events(disk_, "energy");
  ASSERT_FALSE(lines.empty());
  for (const json& line : lines) {
    EXPECT_FALSE(line["whole"].contains("joules"));
    for (const json& phase : line["phases"]) {
      EXPECT_FALSE(phase.contains("joules"));
      EXPECT_GE(phase["seconds"], 0.0);
    }
  }
}

TEST(TheBackgroundWorker, DoesOnePieceAfterTheOtherInAnotherThread) {
  engine::BackgroundWorker worker{config::AsyncSettings{}};
  std::vector<int> done;
  std::thread::id where;
  worker.post([&] { where = std::this_thread::get_id(); });
  for (int piece = 0; piece < 100; ++piece) worker.post([&, piece] { done.push_back(piece); });
  worker.wait();
  EXPECT_NE(where, std::this_thread::get_id());
  EXPECT_THAT(done, ::testing::SizeIs(100));
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
}

TEST(TheBackgroundWorker, GoesOnAfterAPieceThatThrows) {
  engine::BackgroundWorker worker{config::AsyncSettings{}};
  bool is_done = false;
  worker.post([] { throw std::bad_alloc(); });
  worker.post([&] { is_done = true; });
  worker.wait();
  EXPECT_TRUE(is_done);
}

TEST(TheBackgroundWorker, GoesWhenAllIsDone) {
  int done = 0;
  {
    engine::BackgroundWorker worker{config::AsyncSettings{}};
    for (int piece = 0; piece < 100; ++piece) worker.post([&] { ++done; });
  }
  EXPECT_EQ(done, 100);
}

TEST(TheLedger, GoesOnWhenThereIsRoomAgain) {
  Shape shape;
  shape.ranks = 1;
  int warnings = 0;
  shape.log = [&](Severity severity, const std::string& text) {
    if (severity == Severity::warning && text.find("ledger.jsonl") != std::string::npos) ++warnings;
  };
  VolatileDisk disk;
  ASSERT_TRUE(run_job(disk, shape, [&](library::Engine& engine, Program& program, std::uint32_t) {
    library::CheckpointInfo info;
    for (std::uint64_t version = 1; version <= 30; ++version) {
      program.compute(version);
      disk.set_capacity(version < 10 || version > 28 ? std::uint64_t{1} << 30 : 0);
      (void)take(engine, version, 1, info);
    }
  }));
  EXPECT_EQ(warnings, 1);
  std::vector<std::uint64_t> versions;
  for (const json& line : ledger_events(disk, "checkpoint")) versions.push_back(line["version"]);
  std::vector<std::uint64_t> all(30);
  std::iota(all.begin(), all.end(), 1);
  EXPECT_EQ(versions, all);
}

INSTANTIATE_TEST_SUITE_P(Modes, Accounting, ::testing::Values("off", "thread", "rank", "relayed"),
                         [](const auto& mode) { return std::string(mode.param); });

}  // namespace
}  // namespace diapause::test_support
