// Checkpoints that go on behind the program: what the program is told, and what holds when.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>

#include "engine/cluster.hpp"
#include "engine/ledger_events.hpp"

namespace diapause::test_support {
namespace {

// "relayed" is a thread that may not communicate.
Shape with_mode(const std::string& mode, const std::string& more) {
  Shape shape;
  shape.ranks = 4;
  if (mode == "relayed") shape.threads = ThreadJob::Threads::one;
  shape.config = "[async]\nmode = \"" + (mode == "relayed" ? "thread" : mode) + "\"\n" + more;
  return shape;
}

// Slow enough that a version is in flight for a while: an image has some 20 KiB, and a piece holds
// back the next one.
const char* const kSlowFlush = "flush_mib_s = 0.04\n";

class Async : public ::testing::TestWithParam<const char*> {
 protected:
  static Shape in_background(const std::string& more = "") { return with_mode(GetParam(), more); }

  void SetUp() override {
    if (std::getenv("DIAPAUSE_TEST_ASYNC") != nullptr) GTEST_SKIP() << "sets its own mode";
  }
  VolatileDisk disk_;
};

TEST_P(Async, ReachesEveryLevelWithoutAnotherCallOfTheProgram) {
  for (int level = 1; level <= 4; ++level) {
    const auto version = static_cast<std::uint64_t>(level);
    ASSERT_TRUE(run_job(disk_, in_background(),
                        [&](library::Engine& engine, Program& program, std::uint32_t) {
                          program.compute(version);
                          library::CheckpointInfo info;
                          ASSERT_TRUE(engine.checkpoint(version, level, info));
                          program.scramble();  // the program goes on at once
                          const Status reached = engine.wait(version, level, 60);
                          EXPECT_TRUE(reached) << reached.error().message;
                          EXPECT_EQ(engine.poll(version)->level_reached, level);
                        }));
    const Restarted restarted = restart_job(disk_, in_background());
    EXPECT_TRUE(restarted.status) << restarted.status.error().message;
    EXPECT_EQ(restarted.version, version);
    EXPECT_TRUE(restarted.intact);
  }
}

TEST_P(Async, SeveralVersionsAreInFlightAndAllArrive) {
  ASSERT_TRUE(run_job(disk_,
                      in_background("in_flight = 4\n[level4]\nkeep = 8\n[level1]\nkeep = 8\n"),
                      [&](library::Engine& engine, Program& program, std::uint32_t) {
                        library::CheckpointInfo info;
                        for (std::uint64_t version = 1; version <= 6; ++version) {
                          program.compute(version);
                          EXPECT_TRUE(engine.checkpoint(version, version % 2 == 0 ? 4 : 1, info));
                        }
                        for (std::uint64_t version = 1; version <= 6; ++version) {
                          EXPECT_TRUE(engine.wait(version, version % 2 == 0 ? 4 : 1, 60));
                        }
                      }));
  for (std::uint64_t version = 1; version <= 6; ++version) {
    const Restarted restarted = restart_job(disk_, in_background(), version);
    EXPECT_TRUE(restarted.status) << restarted.status.error().message;
    EXPECT_TRUE(restarted.intact);
  }
}

TEST_P(Async, TheLedgerTellsOfTheTimeInTheCallWithItsWaitForRoom) {
  std::vector<library::CheckpointInfo> told(3);
  ASSERT_TRUE(run_job(disk_, in_background(std::string("in_flight = 1\n") + kSlowFlush),
                      [&](library::Engine& engine, Program& program, std::uint32_t rank) {
                        library::CheckpointInfo info;
                        for (std::uint64_t version = 0; version < told.size(); ++version) {
                          program.compute(version);
                          EXPECT_TRUE(engine.checkpoint(version, 4, info));
                          if (rank == 0) told[version] = info;
                        }
                        EXPECT_TRUE(engine.close(60));
                      }));
  const std::vector<nlohmann::json> lines = ledger_events(disk_, "checkpoint");
  ASSERT_EQ(lines.size(), told.size());
  for (std::size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(lines[i]["waited_s"], told[i].waited_s);
    EXPECT_GE(lines[i]["phases"]["wait"], lines[i]["waited_s"]);
    EXPECT_GE(lines[i]["blocked_s"], lines[i]["phases"]["wait"]);
    EXPECT_LE(lines[i]["blocked_s"], told[i].blocked_s);
  }
  EXPECT_GT(told.back().waited_s, 0);
}

TEST_P(Async, FilesOfARankAndOfTheEngineBesideItDoNotMeet) {
  ASSERT_TRUE(run_job(
      disk_, in_background(), [&](library::Engine& engine, Program& program, std::uint32_t) {
        library::CheckpointInfo info;
        for (std::uint64_t version = 1; version <= 24; ++version) {
          program.compute(version);
          EXPECT_TRUE(engine.checkpoint(version, static_cast<int>(version % 4 + 1), info));
        }
        for (std::uint64_t version = 1; version <= 24; ++version) {
          const Status reached = engine.wait(version, static_cast<int>(version % 4 + 1), 60);
          EXPECT_TRUE(reached) << "version " << version << ": " << reached.error().message;
        }
      }));
}

TEST_P(Async, ClosingWaitsForWhatIsInFlight) {
  ASSERT_TRUE(run_job(disk_, in_background(kSlowFlush),
                      [&](library::Engine& engine, Program& program, std::uint32_t) {
                        program.compute(5);
                        library::CheckpointInfo info;
                        EXPECT_TRUE(engine.checkpoint(5, 4, info));
                        EXPECT_LT(info.level_reached, 4);
                      }));
  disk_.erase("/memory");
  const Restarted restarted = restart_job(disk_, in_background());
  EXPECT_EQ(restarted.version, 5u);
  EXPECT_TRUE(restarted.intact);
}

TEST_P(Async, ClosingWithinATimeGivesUpWhatIsNotBegun) {
  ASSERT_TRUE(run_job(disk_, in_background("in_flight = 8\nflush_mib_s = 0.02\n"),
                      [&](library::Engine& engine, Program& program, std::uint32_t) {
                        library::CheckpointInfo info;
                        for (std::uint64_t version = 1; version <= 8; ++version) {
                          program.compute(version);
                          EXPECT_TRUE(engine.checkpoint(version, 4, info));
                        }
                        EXPECT_TRUE(engine.wait(1, 1, 60));
                        const Status closed = engine.close(0.01);
                        ASSERT_FALSE(closed);
                        EXPECT_EQ(closed.error().code, Code::off);
                      }));
  // The levels are given up and not the captures: the next start makes a version of the last.
  const Restarted restarted = restart_job(disk_, in_background());
  EXPECT_TRUE(restarted.status) << restarted.status.error().message;
  EXPECT_TRUE(restarted.intact);
  EXPECT_EQ(restarted.version, 8u);
}

TEST_P(Async, ClosingWithinATimeDoesNotWaitForAFileThatIsWrittenSlowly) {
  // Each image after the first would take hours.
  ASSERT_TRUE(run_job(disk_, in_background("flush_mib_s = 0.000001\n"),
                      [&](library::Engine& engine, Program& program, std::uint32_t) {
                        program.compute(5);
                        library::CheckpointInfo info;
                        EXPECT_TRUE(engine.checkpoint(5, 4, info));
                        EXPECT_TRUE(engine.wait(5, 1, 60));
                        const Status closed = engine.close(0.01);
                        ASSERT_FALSE(closed);
                        EXPECT_EQ(closed.error().code, Code::off);
                      }));
  const Restarted restarted = restart_job(disk_, in_background());
  EXPECT_EQ(restarted.version, 5u);
  EXPECT_TRUE(restarted.intact);
}

void take_in_background(VolatileDisk& disk, const Shape& shape, std::uint64_t version, int level) {
  ASSERT_TRUE(run_job(disk, shape, [&](library::Engine& engine, Program& program, std::uint32_t) {
    program.compute(version);
    library::CheckpointInfo info;
    EXPECT_TRUE(engine.checkpoint(version, level, info));
    EXPECT_TRUE(engine.wait(version, level, 60));
  }));
}

// All work that is still to be done behind the program is held back until the program has gone on.
TEST_P(Async, TheProgramGoesOnAfterALossBeforeTheRedundancyIsBack) {
  for (const int level : {2, 3}) {
    VolatileDisk disk;
    take_in_background(disk, in_background(), 7, level);
    ASSERT_TRUE(disk.erase(node_directory(disk, "node1")));
    FaultKernel kernel(disk);
    kernel.hold(Call::renameat, "spare/");  // files that are about to become part of a version
    std::atomic<int> gone_on = 0;
    ASSERT_TRUE(run_job(kernel, in_background(),
                        [&](library::Engine& engine, Program& program, std::uint32_t) {
                          library::RestartInfo info;
                          const Status restarted = engine.restart(library::Engine::kNewest, info);
                          EXPECT_TRUE(restarted) << restarted.error().message;
                          EXPECT_TRUE(program.holds(7));
                          EXPECT_EQ(engine.poll(7)->level_asked, level);
                          EXPECT_EQ(engine.poll(7)->level_reached, 0);
                          if (++gone_on == 4) kernel.release();
                          const Status back = engine.wait(7, level, 120);
                          EXPECT_TRUE(back) << back.error().message;
                        }));
    ASSERT_TRUE(disk.erase(node_directory(disk, "node0")));
    const Restarted again = restart_job(disk, in_background());
    EXPECT_TRUE(again.status) << again.status.error().message;
    EXPECT_TRUE(again.intact);
  }
}

TEST_P(Async, WhatWasRestoredStaysUntilTheRedundancyIsBack) {
  for (const int level : {2, 3}) {
    VolatileDisk disk;
    take_in_background(disk, in_background(), 7, level);
    ASSERT_TRUE(disk.erase(node_directory(disk, "node1")));
    FaultKernel kernel(disk);
    ASSERT_TRUE(run_job(
        kernel, in_background(), [&](library::Engine& engine, Program& program, std::uint32_t) {
          library::RestartInfo info;
          EXPECT_TRUE(engine.restart_begin(library::Engine::kNewest, info));
          EXPECT_TRUE(engine.restore({}));
          kernel.arm({Fault::stop});  // the machine goes down with the redundancy half put back
          (void)engine.restart_end();
          EXPECT_TRUE(program.holds(7));
        }));
    const Restarted again = restart_job(disk, in_background());
    EXPECT_TRUE(again.status) << again.status.error().message;
    EXPECT_EQ(again.version, 7U);
    EXPECT_TRUE(again.intact);
  }
}

// Waits for what happens behind the program.
template <class Condition>
bool comes_true(Condition condition) {
  for (int i = 0; i < 120'000 && !condition(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return condition();
}

TEST_P(Async, TheFirstCheckpointFindsItsMemoryReady) {
  FaultKernel kernel(disk_);
  std::barrier together(4);
  ASSERT_TRUE(run_job(
      kernel, in_background(), [&](library::Engine& engine, Program& program, std::uint32_t rank) {
        program.compute(1);
        together.arrive_and_wait();
        if (rank == 0) kernel.arm({Fault::none});  // counts from here
        together.arrive_and_wait();
        library::RestartInfo none;
        EXPECT_EQ(engine.restart(library::Engine::kNewest, none).error().code, Code::not_found);
        EXPECT_TRUE(comes_true(
            [&] { return kernel.calls(Call::map_shared) >= 4; }));  // the end of making a slot
        together.arrive_and_wait();
        if (rank == 0) kernel.arm({Fault::fail_from_here, 0, Call::fallocate, ENOSPC});
        together.arrive_and_wait();
        library::CheckpointInfo info;
        const Status taken = engine.checkpoint(1, 1, info);
        EXPECT_TRUE(taken) << taken.error().message;
        EXPECT_TRUE(engine.wait(1, 1, 60));
      }));
  const Restarted restarted = restart_job(disk_, in_background());
  EXPECT_EQ(restarted.version, 1U);
  EXPECT_TRUE(restarted.intact);
}

std::ptrdiff_t free_slots_in_memory(const VolatileDisk& disk) {
  return std::ranges::count_if(files_matching(disk, "/spare/o"), [](const std::string& path) {
    return path.find("/memory/") != path.npos;
  });
}

TEST_P(Async, FreeSlotsAreGivenBackWhenNothingIsInFlight) {
  std::barrier together(4);
  std::atomic<bool> are_given_back = false;
  const auto job = [&](library::Engine& engine, Program& program, std::uint32_t rank) {
    library::CheckpointInfo info;
    for (std::uint64_t version = 1; version <= 10; ++version) {
      program.compute(version);
      EXPECT_TRUE(engine.checkpoint(version, version % 2 == 0 ? 4 : 1, info));
    }
    EXPECT_TRUE(engine.wait(10, 4, 60));
    // All ranks call it as often: it is collective.
    for (int i = 0; i < 60'000 && !are_given_back; ++i) {
      EXPECT_TRUE(engine.snapshot(11, info));
      together.arrive_and_wait();
      // Two versions are kept, and there is one slot for the next: of each of four ranks.
      if (rank == 0) are_given_back = free_slots_in_memory(disk_) == 4;
      together.arrive_and_wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  ASSERT_TRUE(run_job(disk_, in_background("in_flight = 4\n"), job));
  EXPECT_TRUE(are_given_back) << free_slots_in_memory(disk_);
}

TEST_P(Async, SkipsACheckpointOnAllRanksWhenTooManyAreInFlight) {
  std::atomic<int> skipped = 0;
  ASSERT_TRUE(run_job(
      disk_, in_background(std::string(kSlowFlush) + "in_flight = 1\nwhen_full = \"skip\"\n"),
      [&](library::Engine& engine, Program& program, std::uint32_t) {
        library::CheckpointInfo info;
        program.compute(1);
        EXPECT_TRUE(engine.checkpoint(1, 4, info));
        EXPECT_TRUE(engine.checkpoint(2, 4, info));
        EXPECT_NE(info.taken, info.skipped);
        skipped += info.skipped ? 1 : 0;
      }));
  EXPECT_EQ(skipped, 4);
}

TEST_P(Async, WaitsForRoomAndSaysHowLong) {
  std::atomic<int> waited = 0;
  ASSERT_TRUE(run_job(disk_, in_background(std::string(kSlowFlush) + "in_flight = 1\n"),
                      [&](library::Engine& engine, Program& program, std::uint32_t rank) {
                        library::CheckpointInfo info;
                        program.compute(1);
                        EXPECT_TRUE(engine.checkpoint(1, 4, info));
                        EXPECT_TRUE(engine.checkpoint(2, 1, info));
                        EXPECT_TRUE(info.taken);
                        if (rank == 0 && info.waited_s > 0) ++waited;
                      }));
  EXPECT_EQ(waited, 1);
}

TEST_P(Async, AFailureInTheBackgroundIsToldOnceAndCostsNoLevelThatWasReached) {
  ASSERT_TRUE(run_job(disk_, in_background(),
                      [&](library::Engine& engine, Program& program, std::uint32_t rank) {
                        library::CheckpointInfo info;
                        if (rank == 0) disk_.erase("/home/job/diapause");
                        program.compute(1);
                        EXPECT_TRUE(engine.checkpoint(1, 4, info));
                        const Status reached = engine.wait(1, 4, 60);
                        ASSERT_FALSE(reached);
                        EXPECT_EQ(engine.poll(1)->level_reached, 1);
                        // The wait has told it, so it is not told again. The engine goes on, with
                        // the directory made anew.
                        program.compute(2);
                        EXPECT_TRUE(engine.checkpoint(2, 4, info));
                        EXPECT_EQ(info.background, Code{});
                        EXPECT_TRUE(engine.wait(2, 4, 60));
                      }));
  EXPECT_EQ(restart_job(disk_, in_background()).version, 2u);
}

TEST_P(Async, TheNextCheckpointTellsOfAFailureThatNobodyWaitedFor) {
  ASSERT_TRUE(run_job(
      disk_, in_background(), [&](library::Engine& engine, Program& program, std::uint32_t rank) {
        library::CheckpointInfo info;
        if (rank == 0) disk_.erase("/home/job/diapause");
        program.compute(1);
        EXPECT_TRUE(engine.checkpoint(1, 4, info));
        while (engine.poll(1)->in_flight) std::this_thread::yield();
        program.compute(2);
        EXPECT_TRUE(engine.checkpoint(2, 1, info));
        EXPECT_NE(info.background, Code{});
        EXPECT_EQ(info.background_version, 1u);
        EXPECT_NE(engine.background_reason().find("/home/job/diapause"), std::string::npos)
            << engine.background_reason();
      }));
}

TEST_P(Async, CapturesInMemoryAndPublishesOnDisk) {
  const std::string on_disk =
      "[local]\npath = \"/memory/disk\"\n[level1]\ntier = \"local\"\n[level2]\ntier = \"local\"\n";
  ASSERT_TRUE(run_job(disk_, in_background(on_disk),
                      [&](library::Engine& engine, Program& program, std::uint32_t) {
                        library::CheckpointInfo info;
                        for (std::uint64_t version = 1; version <= 5; ++version) {
                          program.compute(version);
                          EXPECT_TRUE(engine.checkpoint(version, 2, info));
                        }
                        EXPECT_TRUE(engine.wait(5, 2, 60));
                      }));
  EXPECT_TRUE(files_matching(disk_, "/memory/disk").size() > 0);
  const Restarted restarted = restart_job(disk_, in_background(on_disk));
  EXPECT_EQ(restarted.version, 5u);
  EXPECT_TRUE(restarted.intact);
}

TEST_P(Async, OneRankMayWaitWhileTheOthersAreInTheNextCheckpoint) {
  ASSERT_TRUE(run_job(disk_, in_background(),
                      [&](library::Engine& engine, Program& program, std::uint32_t rank) {
                        library::CheckpointInfo info;
                        program.compute(1);
                        EXPECT_TRUE(engine.checkpoint(1, 3, info));
                        EXPECT_EQ(info.level_reached, 0);
                        if (rank == 0) {
                          EXPECT_TRUE(engine.wait(1, 3, 60));
                        }
                        program.compute(2);
                        EXPECT_TRUE(engine.checkpoint(2, 1, info));
                      }));
}

TEST_P(Async, WaitingForWhatCannotBeIsAnError) {
  ASSERT_TRUE(run_job(disk_, in_background(),
                      [&](library::Engine& engine, Program& program, std::uint32_t) {
                        library::CheckpointInfo info;
                        program.compute(1);
                        EXPECT_TRUE(engine.checkpoint(1, 1, info));
                        EXPECT_EQ(engine.wait(1, 3, 1).error().code, Code::argument);
                        EXPECT_EQ(engine.wait(9, 1, 1).error().code, Code::not_found);
                        EXPECT_EQ(engine.wait(1, 7, 1).error().code, Code::argument);
                      }));
}

INSTANTIATE_TEST_SUITE_P(Modes, Async, ::testing::Values("thread", "rank", "relayed"),
                         [](const auto& mode) { return std::string(mode.param); });

class SetAside : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("DIAPAUSE_TEST_ASYNC") != nullptr) GTEST_SKIP() << "sets its own mode";
  }
  VolatileDisk disk_;
};

TEST_F(SetAside, VersionsOfOneModeAreThereInEveryOther) {
  const std::vector<std::string> modes{"rank", "off", "thread", "relayed", "rank"};
  std::uint64_t version = 0;
  for (const std::string& mode : modes) {
    const Shape shape = with_mode(mode, "");
    if (version > 0) {
      const Restarted restarted = restart_job(disk_, shape);
      EXPECT_EQ(restarted.version, version) << mode;
      EXPECT_TRUE(restarted.intact) << mode;
    }
    ++version;
    ASSERT_TRUE(
        run_job(disk_, shape, [&](library::Engine& engine, Program& program, std::uint32_t) {
          program.compute(version);
          library::CheckpointInfo info;
          EXPECT_TRUE(engine.checkpoint(version, 3, info));
          EXPECT_TRUE(engine.wait(version, 3, 60));
        }));
  }
}

TEST_F(SetAside, TheOthersAreNumberedAnewInTheirOrder) {
  engine::Topology whole;
  whole.node_of_rank = {0, 1, 1, 0, 1, 0};
  whole.node_names = {"left", "right"};
  whole.leaders = {0, 1};
  whole.rank = 3;
  const auto computes = engine::dedicate_last_ranks(whole);
  ASSERT_TRUE(computes);
  EXPECT_FALSE(computes->is_dedicated);
  EXPECT_EQ(computes->computing.rank, 3u);
  EXPECT_EQ(computes->computing.node_of_rank, (std::vector<std::uint32_t>{0, 1, 1, 0}));
  whole.rank = 4;
  whole.node = 1;
  const auto serves = engine::dedicate_last_ranks(whole);
  ASSERT_TRUE(serves);
  EXPECT_TRUE(serves->is_dedicated);
  EXPECT_EQ(serves->computing.rank, 1u);
  EXPECT_EQ(engine::acting_for_nodes(serves->computing).acted_for,
            (std::vector<std::uint32_t>{1, 2}));
}

TEST_F(SetAside, ANodeOfOneRankIsNamed) {
  const Shape shape =
      with_mode("rank", "[node]\nranks_per_node = 5\nnames = [\"left\", \"right\"]\n");
  const Status opened =
      run_job(disk_, shape, [](library::Engine&, Program&, std::uint32_t) { FAIL(); });
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::config);
  EXPECT_NE(opened.error().message.find("right has only rank 5"), std::string::npos)
      << opened.error().message;
}

TEST_F(SetAside, GivesWayToTheRanksThatCompute) {
  Shape shape = with_mode("rank", "cpu = 1023\n");
  shape.ranks_per_node = 4;
  std::atomic<int> refused = 0;
  shape.log = [&](Severity, const std::string& text) {
    refused += text.find("processor 1023") != std::string::npos;
  };
  ASSERT_TRUE(run_job(disk_, shape, [](library::Engine&, Program&, std::uint32_t) {}));
  EXPECT_EQ(refused, 1);
}

TEST_F(SetAside, ARankSetAsideWhereWorkIsDoneInTheCallsHoldsNothing) {
  const Shape shape = with_mode("rank", "[global]\nmode = \"direct\"\n");
  checkpoint_job(disk_, shape, {{1, 4}, {2, 1}});
  EXPECT_EQ(restart_job(disk_, shape).version, 2u);
}

}  // namespace
}  // namespace diapause::test_support
