// The global tier: files that ranks share, and checkpoints that go there directly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "engine/cluster.hpp"

namespace diapause::test_support {
namespace {

using ::testing::HasSubstr;

Shape with(const std::string& config) {
  Shape shape;
  shape.config = config;
  return shape;
}

std::vector<std::string> global_images(const VolatileDisk& disk) {
  std::vector<std::string> names;
  for (const std::string& path : files_matching(disk, ".img")) {
    if (path.starts_with("/home/job/")) names.push_back(path.substr(path.rfind('/') + 1));
  }
  return names;
}

TEST(GlobalFiles, AreAsManyAsAskedFor) {
  const std::pair<const char*, std::size_t> kCounts[] = {
      {"\"rank\"", 8}, {"\"auto\"", 4}, {"1", 1}, {"3", 3}, {"100", 8}};
  for (const auto& [files, count] : kCounts) {
    const Shape shape = with(std::string("[global]\nfiles = ") + files + "\n");
    VolatileDisk disk;
    checkpoint_job(disk, shape, {{7, 4}});
    EXPECT_EQ(global_images(disk).size(), count) << files;
    expect_restart_from_global(disk, shape, 7);
  }
}

TEST(GlobalFiles, MayBeOfAnotherKindInTheNextRun) {
  VolatileDisk disk;
  checkpoint_job(disk, with("[global]\nfiles = 2\n"), {{6, 4}});
  const Shape plain;
  EXPECT_EQ(restart_job(disk, plain).version, 6u);
  checkpoint_job(disk, plain, {{7, 4}});
  EXPECT_EQ(global_images(disk).size(), 2u + 8u);
  expect_restart_from_global(disk, with("[global]\nfiles = \"auto\"\n"), 7);
}

TEST(GlobalFiles, ThatAreSharedGoWithTheirVersion) {
  const Shape shape = with("[global]\nfiles = 3\n");
  VolatileDisk disk;
  checkpoint_job(disk, shape, {{5, 4}, {6, 4}, {7, 4}});
  EXPECT_EQ(global_images(disk).size(), 2u * 3u);  // the images of the two versions that are kept
  EXPECT_TRUE(files_matching(disk, "/spare/").empty() ||
              std::ranges::none_of(files_matching(disk, "/spare/"), [](const std::string& path) {
                return path.starts_with("/home/job/");
              }));
}

class DirectMode : public ::testing::TestWithParam<const char*> {};

TEST_P(DirectMode, LeavesNothingOnTheNodesAndRestoresFromTheGlobalTier) {
  const Shape shape =
      with(std::string("[global]\nmode = \"direct\"\nfiles = ") + GetParam() + "\n");
  VolatileDisk disk;
  checkpoint_job(disk, shape, {{6, 1}, {7, 4}});
  for (const std::string& path : files_matching(disk, "/v7-"))
    EXPECT_TRUE(path.starts_with("/home/job/")) << path;
  const Restarted restarted = restart_job(disk, shape);
  EXPECT_EQ(restarted.version, 7u);
  EXPECT_TRUE(restarted.intact);
  expect_restart_from_global(disk, shape, 7);
}

TEST_P(DirectMode, GoesOnAfterAFailureOfAnyRank) {
  const Shape shape =
      with(std::string("[global]\nmode = \"direct\"\nfiles = ") + GetParam() + "\n");
  VolatileDisk disk;
  checkpoint_job(disk, shape, {{6, 4}});
  for (std::uint64_t call = 0; call < 120; call += 7) {
    FaultKernel kernel(disk, {Fault::fail_once, call, Call::pwrite, ENOSPC});
    std::uint64_t newest = 6;
    const Status opened =
        run_job(kernel, shape, [&](library::Engine& engine, Program& program, std::uint32_t rank) {
          for (const std::uint64_t version : {7u, 8u}) {
            program.compute(version);
            library::CheckpointInfo info;
            const Status done = engine.checkpoint(version, 4, info);
            EXPECT_EQ(info.level_reached, done ? 4 : 0);
            if (rank == 0 && done) newest = version;
          }
        });
    EXPECT_TRUE(opened);
    EXPECT_GE(newest, 7u) << "one failed write cost two checkpoints";
    const Restarted restarted = restart_job(disk, shape);
    EXPECT_EQ(restarted.version, newest) << "write " << call;
    EXPECT_TRUE(restarted.intact) << "write " << call;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, DirectMode, ::testing::Values("\"rank\"", "\"auto\"", "3"));

TEST(SlowWrites, AreToldOfOnceForEachTier) {
  Shape shape;
  std::vector<std::string> said;
  std::mutex mutex;
  shape.log = [&](Severity severity, const std::string& message) {
    const std::lock_guard lock(mutex);
    const bool is_of_writes = message.find("written") != message.npos;
    if (severity == Severity::information && is_of_writes) said.push_back(message);
  };
  VolatileDisk disk;
  disk.refuse_direct();
  checkpoint_job(disk, shape, {{6, 4}, {7, 4}});
  EXPECT_THAT(said, ::testing::UnorderedElementsAre(HasSubstr("global tier /home/job/diapause/"),
                                                    HasSubstr("io_uring is refused here")));
  EXPECT_THAT(said, ::testing::Contains(HasSubstr("refuses O_DIRECT")));
}

// File systems that want other alignments do this, or those that a program serves.
TEST(DirectAccess, GrantedAtOpenAndRefusedLaterCostsNoLevelAndNoRestart) {
  for (const char* files : {"\"rank\"", "2"}) {
    Shape shape =
        with("[level1]\ntier = \"local\"\n[local]\npath = \"/local\"\n[global]\nfiles = " +
             std::string(files) + "\n");
    std::vector<std::string> said;
    std::mutex mutex;
    shape.log = [&](Severity, const std::string& message) {
      const std::lock_guard lock(mutex);
      if (message.find("refuses O_DIRECT") != message.npos) said.push_back(message);
    };
    VolatileDisk disk;
    disk.refuse_direct_transfers();
    checkpoint_job(disk, shape, {{6, 4}, {7, 4}});
    EXPECT_THAT(said, ::testing::Contains(HasSubstr("the global tier")).Times(1));
    EXPECT_TRUE(restart_job(disk, shape).intact);
    disk.erase("/local");
    expect_restart_from_global(disk, shape, 7);
  }
}

TEST(MpiIo, IsRefusedWithoutMpi) {
  VolatileDisk disk;
  const Status opened =
      run_job(disk, with("[global]\nmode = \"mpi-io\"\nfiles = 2\n"), [](auto&, auto&, auto) {});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::config);
  EXPECT_THAT(opened.error().message, HasSubstr("without MPI"));
}

}  // namespace
}  // namespace diapause::test_support
