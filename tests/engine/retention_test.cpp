// Tests how many versions stay, and what happens when there is no room.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "engine/cluster.hpp"
#include "support/fault_kernel.hpp"

namespace diapause::test_support {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::set<std::uint64_t> numbers_in(const VolatileDisk& disk, const std::string& root) {
  std::set<std::uint64_t> numbers;
  for (const std::string& path : files_matching(disk, "manifest.a")) {
    const std::size_t at = path.find("/v");
    if (path.starts_with(root) && at != path.npos) numbers.insert(std::stoull(path.substr(at + 2)));
  }
  return numbers;
}

TEST(Retention, KeepsTheNewestVersionsOfEveryLevel) {
  Shape shape;
  shape.config = "[level1]\nkeep = 2\n[level2]\nkeep = 2\n[level3]\nkeep = 2\n";
  VolatileDisk disk;
  checkpoint_job(disk, shape, {{1, 4}, {2, 1}, {3, 2}, {4, 1}, {5, 3}, {6, 1}, {7, 1}});
  EXPECT_THAT(numbers_in(disk, "/memory"), ElementsAre(3, 5, 6, 7));
  EXPECT_THAT(numbers_in(disk, "/home/job"), ElementsAre(1));
}

TEST(Retention, KeepsOneVersionOfEachLevelOnTheNodesAndTwoInTheGlobalDirectoryByDefault) {
  Shape shape;
  VolatileDisk disk;
  checkpoint_job(disk, shape, {{1, 4}, {2, 4}, {3, 4}, {4, 3}, {5, 2}, {6, 1}, {7, 1}});
  EXPECT_THAT(numbers_in(disk, "/memory"), ElementsAre(4, 5, 7));
  EXPECT_THAT(numbers_in(disk, "/home/job"), ElementsAre(2, 3));
}

TEST(Retention, TellsOnceForEachLevelWhatANodeHolds) {
  Shape shape;
  shape.elements = 100'000;
  std::mutex mutex;
  std::vector<std::string> told;
  shape.log = [&](Severity, const std::string& text) {
    const std::lock_guard lock(mutex);
    if (text.find("of the memory tier of node0") != text.npos) told.push_back(text);
  };
  VolatileDisk disk;
  checkpoint_job(disk, shape, {{1, 2}, {2, 3}, {3, 2}, {4, 3}});
  ASSERT_EQ(told.size(), 2u);
  EXPECT_THAT(told[0], StartsWith("version 1 of level 2 takes"));
  EXPECT_THAT(told[0], Not(HasSubstr(" 0.0 for partner copies")));
  EXPECT_THAT(told[0], EndsWith(" 0.0 for parity"));
  EXPECT_THAT(told[1], StartsWith("version 2 of level 3 takes"));
  EXPECT_THAT(told[1], HasSubstr(" 0.0 for partner copies"));
  EXPECT_THAT(told[1], Not(EndsWith(" 0.0 for parity")));
}

// A version that the program was told is held stays restorable at its level until another version
// holds as much, whatever becomes of that one.
TEST(Retention, AVersionStaysUntilTheNextOneHoldsAsMuch) {
  for (const int level : {2, 3}) {
    Shape shape;
    VolatileDisk disk;
    checkpoint_job(disk, shape, {{1, level}});
    FaultKernel kernel(disk);
    ASSERT_TRUE(
        run_job(kernel, shape, [&](library::Engine& engine, Program& program, std::uint32_t rank) {
          library::CheckpointInfo info;
          program.compute(2);
          EXPECT_TRUE(take(engine, 2, 1, info));
          if (rank == 0) kernel.arm({Fault::fail_from_here, 0, Call::renameat, EIO});
          program.compute(3);
          EXPECT_FALSE(take(engine, 3, level, info));
        }));
    ASSERT_TRUE(disk.erase(node_directory(disk, "node1")));
    const Restarted restarted = restart_job(disk, shape);
    ASSERT_TRUE(restarted.status) << restarted.status.error().message;
    EXPECT_EQ(restarted.version, 1u) << "level " << level;
    EXPECT_TRUE(restarted.intact);
  }
}

TEST(Retention, LeavesNoFilesOfWhatItGaveUp) {
  Shape shape;
  shape.config = "[level1]\nkeep = 1\n[level2]\nkeep = 1\n[level3]\nkeep = 1\n[level4]\nkeep = 1\n";
  VolatileDisk disk;
  for (std::uint64_t version = 1; version <= 12; ++version) {
    checkpoint_job(disk, shape, {{version, static_cast<int>(version % 4 + 1)}});
  }
  std::set<std::string> directories;
  for (const std::string& path : disk.paths()) {
    if (path.find("/v") != path.npos) directories.insert(path.substr(path.find("/v") + 1, 4));
  }
  EXPECT_LE(directories.size(), 4u);
}

TEST(Retention, ANumberTakenAgainReplacesTheOldOne) {
  Shape shape;
  VolatileDisk disk;
  checkpoint_job(disk, shape, {{5, 1}, {6, 1}});
  checkpoint_job(disk, shape, {{6, 1}});
  EXPECT_EQ(files_matching(disk, "/node0/v6-").size(), 4u) << "two images, two manifests";
  EXPECT_EQ(restart_job(disk, shape).version, 6u);
}

TEST(Retention, TakingANumberAgainWithLessDataLeavesNoOldTail) {
  Shape large;
  large.elements = 20000;
  Shape small = large;
  small.elements = 100;
  VolatileDisk disk;
  checkpoint_job(disk, large, {{5, 1}, {6, 1}, {7, 1}});
  checkpoint_job(disk, small, {{7, 1}});
  const Restarted restarted = restart_job(disk, small);
  ASSERT_TRUE(restarted.status) << restarted.status.error().message;
  EXPECT_EQ(restarted.version, 7u);
  EXPECT_TRUE(restarted.intact);
}

TEST(Retention, OldVersionsMakeRoomAndTheLastGoodOneStays) {
  Shape shape;
  shape.ranks = 2;
  shape.ranks_per_node = 2;
  shape.elements = 4000;
  VolatileDisk disk;
  // There is room for some four files of 36 KiB for each rank, and for the mailbox.
  disk.set_capacity(360 * 1024);
  ASSERT_TRUE(run_job(disk, shape, [](library::Engine& engine, Program& program, std::uint32_t) {
    for (std::uint64_t version = 1; version <= 6; ++version) {
      program.compute(version);
      library::CheckpointInfo info;
      const Status done = take(engine, version, 1, info);
      EXPECT_TRUE(done) << done.error().message;
    }
  }));
  EXPECT_EQ(restart_job(disk, shape).version, 6u);
}

// A call that looks for room while the version before is removed waits for that, and has room then.
TEST(Retention, RoomIsMadeByWhatSurvivesLeast) {
  Shape shape;
  shape.config = "[level1]\nkeep = 3\n";
  // A rank looks for room before the decision, after it, and then with the others.
  constexpr std::uint64_t kAttempts = 3;
  std::barrier is_armed(static_cast<std::ptrdiff_t>(shape.ranks));
  VolatileDisk disk;
  FaultKernel kernel(disk);
  const Status opened =
      run_job(kernel, shape, [&](library::Engine& engine, Program& program, std::uint32_t rank) {
        for (const auto& [version, level] :
             std::map<std::uint64_t, int>{{1, 3}, {2, 1}, {3, 1}, {4, 1}}) {
          if (version == 4 && rank == 0)
            kernel.arm({Fault::fail_once, 0, Call::fallocate, ENOSPC, kAttempts * shape.ranks});
          if (version == 4) is_armed.arrive_and_wait();
          program.compute(version);
          library::CheckpointInfo info;
          EXPECT_TRUE(take(engine, version, level, info));
        }
      });
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_TRUE(kernel.reached());
  EXPECT_THAT(numbers_in(disk, "/memory"), ElementsAre(1, 3, 4))
      << "version 1 alone outlives a node";
}

TEST(Retention, WhatIsBeingRemovedCountsAsRoom) {
  if (in_background()) GTEST_SKIP() << "has a mode of its own";
  Shape shape;
  shape.ranks = 2;
  shape.ranks_per_node = 2;
  shape.elements = 4000;
  shape.config = "[level1]\nkeep = 1\n[async]\nmode = \"thread\"\n";
  VolatileDisk disk;
  // There is room for two versions and the mailbox, but for no third.
  disk.set_capacity(360 * 1024);
  FaultKernel kernel(disk);
  kernel.record_trace("");
  kernel.hold(Call::unlinkat, "/v1-");
  std::atomic<bool> is_over = false;
  std::atomic<std::ptrdiff_t> refused = 0;  // slots that found no room
  std::thread remover([&] {
    while (refused < 2 && !is_over) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      refused = std::ranges::count_if(kernel.trace(), [](const std::string& call) {
        return call.starts_with("unlinkat ") && call.find("/spare/") != std::string::npos;
      });
    }
    kernel.release();
  });
  const Status opened =
      run_job(kernel, shape, [](library::Engine& engine, Program& program, std::uint32_t) {
        for (std::uint64_t version = 1; version <= 3; ++version) {
          program.compute(version);
          library::CheckpointInfo info;
          const Status done = engine.checkpoint(version, 1, info);
          EXPECT_TRUE(done) << done.error().message;
          EXPECT_TRUE(engine.wait(version, 1, 60));
        }
      });
  is_over = true;
  remover.join();
  EXPECT_TRUE(opened);
  EXPECT_GE(refused, 2) << "there was room for a third version";
  EXPECT_EQ(restart_job(disk, shape).version, 3u);
}

TEST(Retention, AFullTierIsAStatusAndTheProgramRunsOn) {
  Shape shape;
  shape.ranks = 2;
  shape.ranks_per_node = 2;
  shape.elements = 4000;
  VolatileDisk disk;
  checkpoint_job(disk, shape, {{1, 1}});
  disk.set_capacity(100 * 1024);
  ASSERT_TRUE(
      run_job(disk, shape, [&](library::Engine& engine, Program& program, std::uint32_t rank) {
        program.compute(2);
        library::CheckpointInfo info;
        const Status full = take(engine, 2, 1, info);
        ASSERT_FALSE(full);
        EXPECT_EQ(full.error().code, Code::full);
        EXPECT_THAT(full.error().message, HasSubstr("memory tier"));
        if (rank == 0) disk.set_capacity(64 * 1024 * 1024);
      }));
  EXPECT_EQ(restart_job(disk, shape).version, 1u);
  checkpoint_job(disk, shape, {{2, 1}});
  EXPECT_EQ(restart_job(disk, shape).version, 2u);
}

TEST(Retention, AFailedGlobalTierCostsNoLocalCheckpoint) {
  Shape shape;
  VolatileDisk disk;
  checkpoint_job(disk, shape, {{1, 1}});
  for (const std::string& path : disk.paths()) {
    if (path.starts_with("/home/job/") && path.ends_with('/')) disk.set_owner(path, 4711);
  }
  ASSERT_TRUE(run_job(disk, shape, [](library::Engine& engine, Program& program, std::uint32_t) {
    for (std::uint64_t version = 2; version <= 3; ++version) {
      program.compute(version);
      library::CheckpointInfo info;
      const Status done = take(engine, version, 4, info);
      EXPECT_FALSE(done);
      EXPECT_EQ(info.level_reached, 1);
    }
  }));
  EXPECT_EQ(restart_job(disk, shape).version, 3u);
}

TEST(Retention, AnUnusableMemoryTierCostsNoGlobalCheckpoint) {
  Shape shape;
  VolatileDisk disk;
  checkpoint_job(disk, shape, {{1, 1}});
  for (const std::string& path : disk.paths()) {
    if (path.starts_with("/memory/") && path.ends_with('/')) disk.set_owner(path, 4711);
  }
  ASSERT_TRUE(run_job(disk, shape, [](library::Engine& engine, Program& program, std::uint32_t) {
    program.compute(2);
    library::CheckpointInfo info;
    EXPECT_FALSE(take(engine, 2, 4, info));
    EXPECT_EQ(info.level_reached, 4);
  }));
  EXPECT_EQ(restart_job(disk, shape).version, 2u);
}

TEST(Retention, ADeletedTierComesBackByItself) {
  Shape shape;
  VolatileDisk disk;
  ASSERT_TRUE(
      run_job(disk, shape, [&](library::Engine& engine, Program& program, std::uint32_t rank) {
        library::CheckpointInfo info;
        program.compute(1);
        EXPECT_TRUE(take(engine, 1, 1, info));
        if (rank == 0) disk.erase("/memory");
        program.compute(2);
        (void)take(engine, 2, 1, info);  // may fail
        program.compute(3);
        const Status done = take(engine, 3, 2, info);
        EXPECT_TRUE(done) << done.error().message;
      }));
  const Restarted restarted = restart_job(disk, shape);
  EXPECT_EQ(restarted.version, 3u);
  EXPECT_TRUE(restarted.intact);
}

TEST(Instances, TheSecondOnTheSameDirectoriesIsRefusedAndToldWho) {
  Shape shape;
  VolatileDisk disk;
  ASSERT_TRUE(run_job(disk, shape, [&](library::Engine&, Program&, std::uint32_t rank) {
    if (rank != 0) return;
    const Status second = run_job(disk, shape, [](library::Engine&, Program&, std::uint32_t) {});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Code::busy);
    EXPECT_THAT(second.error().message, HasSubstr("process "));
  }));
}

TEST(CapturesLeftOver, AreLookedForByOneRankOfANode) {
  if (in_background()) GTEST_SKIP() << "is about ranks that act for themselves";
  Shape shape;
  shape.ranks = 4;
  VolatileDisk disk;
  checkpoint_job(disk, shape, {{1, 1}, {2, 1}, {3, 1}, {4, 1}});
  FaultKernel kernel(disk);
  kernel.record_trace("/memory");
  ASSERT_TRUE(run_job(kernel, shape, [](library::Engine&, Program&, std::uint32_t) {}));
  std::map<std::string, int> reads;
  for (const std::string& call : kernel.trace()) {
    if (call.starts_with("pread ") && call.find("/spare/") != std::string::npos) ++reads[call];
  }
  EXPECT_GE(reads.size(), 4u);
  for (const auto& [call, times] : reads) EXPECT_EQ(times, 1) << call;
}

}  // namespace
}  // namespace diapause::test_support
