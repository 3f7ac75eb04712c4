// Stopping in time: whoever is signalled and whenever the allocation ends, all ranks stop at the
// same call, with a checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "engine/cluster.hpp"
#include "sys/text_file.hpp"

namespace diapause::test_support {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kRanks = 8;
constexpr const char* kStopFile = "/home/job/stop";

// A signal that a test sends to one rank.
class SentSignal final : public sys::StopSignals {
 public:
  explicit SentSignal(const std::atomic<int>& sent) : sent_(sent) {}
  Status take(std::span<const int> numbers) override {
    numbers_.assign(numbers.begin(), numbers.end());
    return {};
  }
  int received() const override {
    return std::find(numbers_.begin(), numbers_.end(), sent_.load()) == numbers_.end()
               ? 0
               : sent_.load();
  }

 private:
  const std::atomic<int>& sent_;
  std::vector<int> numbers_;
};

// Says how a rank came to its end.
struct Ending {
  std::uint64_t calls = 0;
  std::uint64_t checkpoints = 0;
  library::CheckpointInfo last;  // its last checkpoint
  std::optional<library::Stop> stop;
};

struct Job {
  VolatileDisk disk;
  Shape shape;
  std::array<std::atomic<int>, kRanks> signals{};
  std::array<Ending, kRanks> endings;

  explicit Job(const std::string& config) {
    shape.ranks = kRanks;
    shape.config = config;
    shape.adjust = [this](library::OpenRequest& request, std::uint32_t rank) {
      request.stop_signals = std::make_unique<SentSignal>(signals[rank]);
      request.environment = {{"DIAPAUSE_RUN_STOP_FILE", kStopFile}};
    };
  }

  // Each rank calls snapshot until it is told to stop, at most so often. `before` runs before every
  // call.
  void run(std::uint64_t most_calls,
           const std::function<void(std::uint32_t rank, std::uint64_t call)>& before) {
    const Status opened =
        run_job(disk, shape, [&](library::Engine& engine, Program& program, std::uint32_t rank) {
          Ending& ending = endings[rank];
          while (ending.calls < most_calls && !ending.stop) {
            before(rank, ++ending.calls);
            program.compute(ending.calls);
            library::CheckpointInfo info;
            EXPECT_TRUE(engine.snapshot(ending.calls, info));
            if (info.taken) ending.last = info;
            ending.checkpoints += info.taken ? 1 : 0;
            ending.stop = engine.should_stop();
          }
        });
    ASSERT_TRUE(opened) << opened.error().message;
    for (const Ending& ending : endings) {
      EXPECT_EQ(ending.calls, endings[0].calls);
      EXPECT_EQ(ending.last.version, endings[0].last.version);
      ASSERT_EQ(ending.stop.has_value(), endings[0].stop.has_value());
      if (ending.stop) {
        EXPECT_EQ(ending.stop->signal, endings[0].stop->signal);
        EXPECT_EQ(ending.stop->rank, endings[0].stop->rank);
      }
    }
  }

  void run(std::uint64_t most_calls) {
    run(most_calls, [](std::uint32_t, std::uint64_t) {});
  }

  std::string stop_file() {
    const auto text = sys::read_text_file(disk, kStopFile);
    return text ? *text : "";
  }
};

constexpr const char* kSignals = "[deadline]\nsignals = [\"SIGTERM\", \"SIGUSR1\"]\n";

TEST(Deadline, ASignalOnOneRankStopsAllAtTheSameCallWithACheckpoint) {
  Job job(kSignals);
  job.run(5000, [&](std::uint32_t rank, std::uint64_t call) {
    if (rank == 5 && call == 100) job.signals[5] = SIGUSR1;
  });
  const Ending& ending = job.endings[0];
  ASSERT_TRUE(ending.stop);
  EXPECT_EQ(ending.stop->signal, SIGUSR1);
  EXPECT_EQ(ending.stop->rank, 5u);
  EXPECT_GE(ending.calls, 100u);
  EXPECT_LE(ending.calls, 200u)
      << "agreed calls are never further apart than the calls before them";
  EXPECT_EQ(ending.last.version, ending.calls);
  EXPECT_EQ(ending.last.level_reached, 4);
  const Restarted restarted = restart_job(job.disk, job.shape);
  EXPECT_EQ(restarted.version, ending.calls);
  EXPECT_TRUE(restarted.intact);
}

// A signal that comes to the threads alone that have not been told of.
class SignalElsewhere final : public sys::StopSignals {
 public:
  struct Here {
    std::mutex mutex;
    std::set<std::thread::id> threads;
  };
  explicit SignalElsewhere(Here& here) : here_(here) {}
  Status take(std::span<const int>) override { return {}; }
  int received() const override {
    const std::lock_guard lock(here_.mutex);
    return here_.threads.contains(std::this_thread::get_id()) ? 0 : SIGUSR1;
  }

 private:
  Here& here_;
};

TEST(SetAsideDeadline, ASignalThatOnlyTheRankSetAsideGetsStopsTheOthers) {
  SignalElsewhere::Here computing;
  Shape shape;
  shape.ranks = 2;
  shape.config = std::string(kSignals) + "[async]\nmode = \"rank\"\n";
  shape.adjust = [&](library::OpenRequest& request, std::uint32_t) {
    request.stop_signals = std::make_unique<SignalElsewhere>(computing);
  };
  std::atomic<int> stopped = 0;
  VolatileDisk disk;
  ASSERT_TRUE(run_job(disk, shape, [&](library::Engine& engine, Program&, std::uint32_t) {
    {
      const std::lock_guard lock(computing.mutex);
      computing.threads.insert(std::this_thread::get_id());
    }
    library::CheckpointInfo info;
    for (std::uint64_t call = 1; call <= 60 && !engine.should_stop(); ++call) {
      EXPECT_TRUE(engine.snapshot(call, info));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    if (engine.should_stop()) ++stopped;
  }));
  EXPECT_EQ(stopped, 2);
}

TEST(Deadline, OtherSignalsStopNothing) {
  Job job(kSignals);
  job.signals[3] = SIGUSR2;
  job.run(300);
  EXPECT_FALSE(job.endings[0].stop);
  EXPECT_EQ(job.endings[0].checkpoints, 0u);
}

TEST(Deadline, TheLowestOfSeveralSignalledRanksIsNamed) {
  Job job(kSignals);
  for (const std::uint32_t rank : {7u, 2u, 4u}) job.signals[rank] = SIGTERM;
  job.run(300);
  ASSERT_TRUE(job.endings[0].stop);
  EXPECT_EQ(job.endings[0].stop->rank, 2u);
  EXPECT_EQ(job.endings[0].calls, 1u);
}

TEST(Deadline, AfterASignalTheTimeUntilTheKillDecidesTheLevel) {
  Job job(std::string(kSignals) + "grace_s = 10.5\nmargin_s = 10\n");
  job.signals[1] = SIGTERM;
  job.run(300);
  EXPECT_EQ(job.endings[0].last.level_reached, 1)
      << "nothing deeper is known to take half a second";
}

TEST(Deadline, ALevelThatCannotBeTakenGivesWayToTheNextOne) {
  Job job(kSignals);
  checkpoint_job(job.disk, job.shape, {{1, 1}});
  for (const std::string& path : job.disk.paths()) {
    if (path.starts_with("/home/job/") && path.ends_with('/')) job.disk.set_owner(path, 4711);
  }
  job.signals[1] = SIGTERM;
  job.run(300);
  EXPECT_EQ(job.endings[0].last.level_asked, 3);
  EXPECT_EQ(job.endings[0].last.level_reached, 3);
}

TEST(Deadline, TheEndOfTheAllocationStopsTheProgramBefore) {
  Job job("[deadline]\nin_s = 100\nmargin_s = 99.9\n");
  job.run(300);
  ASSERT_TRUE(job.endings[0].stop);
  EXPECT_EQ(job.endings[0].stop->signal, 0);
  EXPECT_EQ(job.endings[0].calls, 1u);
  EXPECT_EQ(job.endings[0].checkpoints, 1u);
}

TEST(Deadline, AnEndThatIsFarAwayStopsNothing) {
  Job job("[deadline]\nin_s = 1e6\n");
  job.run(300);
  EXPECT_FALSE(job.endings[0].stop);
  EXPECT_EQ(job.endings[0].checkpoints, 0u);
}

TEST(Deadline, AnEndInThePastStillGetsACheckpoint) {
  Job job("[deadline]\nat_unix_s = 1\n");
  job.run(300);
  ASSERT_TRUE(job.endings[0].stop);
  EXPECT_EQ(job.endings[0].last.level_reached, 1);
}

TEST(Deadline, WhatOnlyRank0KnowsOfTheAllocationHoldsForAll) {
  Job job("");
  const auto adjust = job.shape.adjust;
  job.shape.adjust = [&](library::OpenRequest& request, std::uint32_t rank) {
    adjust(request, rank);
    if (rank == 0) request.environment.emplace_back("SLURM_JOB_ID", "12");
  };
  job.signals[6] = SIGTERM;
  job.run(300);
  ASSERT_TRUE(job.endings[0].stop);
  EXPECT_EQ(job.endings[0].stop->rank, 6u);
}

TEST(Deadline, AProgramThatGoesOnIsLeftToItsSchedule) {
  Job job("[level1]\nevery_calls = 10\n[deadline]\nsignals = [\"SIGTERM\"]\n");
  job.signals[0] = SIGTERM;
  ASSERT_TRUE(run_job(job.disk, job.shape, [&](library::Engine& engine, Program&, std::uint32_t) {
    std::vector<int> levels;
    for (std::uint64_t call = 1; call <= 31; ++call) {
      library::CheckpointInfo info;
      EXPECT_TRUE(engine.snapshot(call, info));
      if (info.taken) levels.push_back(info.level_asked);
    }
    EXPECT_THAT(levels, ::testing::ElementsAre(4, 1, 1, 1));
  }));
  EXPECT_THAT(job.stop_file(), ::testing::StartsWith("SIGTERM on rank 0: version 1 at level 4\n"));
}

TEST(Deadline, TheStopIsNotedForWhoeverStartedTheJob) {
  Job job(kSignals);
  job.run(50);
  EXPECT_EQ(job.stop_file(), "") << "nothing has come yet";
  job.endings = {};
  job.signals[2] = SIGUSR1;
  job.run(50);
  EXPECT_EQ(job.stop_file(), "SIGUSR1 on rank 2: version 1 at level 4\ntold\n");
}

TEST(Deadline, TheLedgerSaysOnceWhyAndAfterWhichCheckpointTheJobStopped) {
  Job job(kSignals);
  job.signals[2] = SIGUSR1;
  job.run(50);
  const auto ledgers = files_matching(job.disk, "/ledger.jsonl");
  ASSERT_EQ(ledgers.size(), 1u);
  const ByteVector content = *job.disk.read_content(ledgers[0]);
  const std::string text(reinterpret_cast<const char*>(content.data()), content.size());
  const std::size_t stop = text.find("\"event\":\"stop\"");
  ASSERT_NE(stop, std::string::npos) << text;
  EXPECT_EQ(text.find("\"event\":\"stop\"", stop + 1), std::string::npos) << "twice";
  const std::string line = text.substr(stop, text.find('\n', stop) - stop);
  EXPECT_THAT(line, HasSubstr("\"why\":\"SIGUSR1 on rank 2\""));
  EXPECT_THAT(line, HasSubstr("\"version\":1"));
  EXPECT_THAT(line, HasSubstr("\"level_reached\":4"));
}

}  // namespace
}  // namespace diapause::test_support
