// A job that its program has finished: what goes, what stays, and how the next start begins.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/cluster.hpp"

namespace diapause::test_support {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Shape small(const std::string& config = "") {
  Shape shape;
  shape.ranks = 4;
  shape.elements = 300;
  shape.config = config + "[level3]\ngroup_nodes = 2\n";
  return shape;
}

constexpr const char* kKeepLast = "[finish]\nkeep = \"last\"\n";

// One more start that takes these checkpoints and then finishes the job; what finishing returned.
Status finish_job(sys::Kernel& kernel, const Shape& shape,
                  const std::vector<std::pair<std::uint64_t, int>>& versions) {
  Status result;
  std::mutex mutex;
  const Status opened =
      run_job(kernel, shape, [&](library::Engine& engine, Program& program, std::uint32_t) {
        for (const auto& [version, level] : versions) {
          program.compute(version);
          library::CheckpointInfo info;
          const Status taken = take(engine, version, level, info);
          EXPECT_TRUE(taken) << taken.error().message;
        }
        const Status finished = engine.finish();
        const std::lock_guard lock(mutex);
        if (!finished) result = finished;
      });
  return opened ? result : opened;
}

void expect_fresh_start(sys::Kernel& kernel, const Shape& shape) {
  const Restarted restarted = restart_job(kernel, shape);
  ASSERT_FALSE(restarted.status);
  EXPECT_EQ(restarted.status.error().code, Code::not_found) << restarted.status.error().message;
  EXPECT_TRUE(restarted.intact);
}

TEST(Finish, LeavesNoVersionAndTheNextStartBeginsAnew) {
  const Shape shape = small();
  VolatileDisk disk;
  ASSERT_TRUE(finish_job(disk, shape, {{1, 4}, {2, 3}, {3, 2}, {4, 1}}));
  EXPECT_THAT(files_matching(disk, "/v"), IsEmpty());
  EXPECT_THAT(files_matching(disk, ".img"), IsEmpty());
  EXPECT_THAT(files_matching(disk, "/mailbox"), IsEmpty());
  expect_fresh_start(disk, shape);
  EXPECT_THAT(restart_job(disk, shape).status.error().message, HasSubstr("'job' was finished"));
  checkpoint_job(disk, shape, {{1, 1}});
  EXPECT_EQ(restart_job(disk, shape).version, 1U);
}

TEST(Finish, LetsAnotherNumberOfRanksBegin) {
  VolatileDisk disk;
  ASSERT_TRUE(finish_job(disk, small(), {{1, 4}}));
  Shape larger = small();
  larger.ranks = 8;
  expect_fresh_start(disk, larger);
  checkpoint_job(disk, larger, {{1, 4}});
  EXPECT_EQ(restart_job(disk, larger).version, 1U);
}

TEST(Finish, KeepsTheLastVersionOfLevel4ForThoseWhoAskForItsNumber) {
  const Shape shape = small(kKeepLast);
  VolatileDisk disk;
  ASSERT_TRUE(finish_job(disk, shape, {{1, 4}, {2, 4}, {3, 1}}));
  EXPECT_THAT(files_matching(disk, "/memory/"), Not(testing::Contains(HasSubstr(".img"))));
  expect_fresh_start(disk, shape);
  EXPECT_THAT(restart_job(disk, shape).status.error().message,
              HasSubstr("its last version, 2, is kept"));
  // The next life of the job leaves it alone, and does not count it among its own.
  checkpoint_job(disk, shape, {{7, 4}, {8, 4}, {9, 4}, {10, 4}});
  EXPECT_EQ(restart_job(disk, shape).version, 10U);
  const Restarted archive = restart_job(disk, shape, 2);
  ASSERT_TRUE(archive.status) << archive.status.error().message;
  EXPECT_TRUE(archive.intact);
}

TEST(Finish, ReplacesTheArchiveOfTheLifeBefore) {
  const Shape shape = small(kKeepLast);
  VolatileDisk disk;
  ASSERT_TRUE(finish_job(disk, shape, {{5, 4}}));
  ASSERT_TRUE(finish_job(disk, shape, {{6, 4}}));
  EXPECT_THAT(files_matching(disk, "/v5-"), IsEmpty());
  EXPECT_TRUE(restart_job(disk, shape, 6).status);
}

TEST(Finish, RemovesNothingWhereThereIsNothingToKeep) {
  const Shape shape = small(kKeepLast);
  VolatileDisk disk;
  const Status finished = finish_job(disk, shape, {{1, 2}});
  ASSERT_FALSE(finished);
  EXPECT_THAT(finished.error().message, HasSubstr("no version of level 4 to keep"));
  EXPECT_EQ(restart_job(disk, shape).version, 1U);
}

TEST(Finish, IsACloseWhereAllIsToBeKept) {
  const Shape shape = small("[finish]\nkeep = \"all\"\n");
  VolatileDisk disk;
  ASSERT_TRUE(finish_job(disk, shape, {{1, 1}, {2, 1}}));
  EXPECT_EQ(restart_job(disk, shape).version, 2U);
}

TEST(Finish, HoldsForNodesThatWereNotThere) {
  Shape monday = small();
  monday.node_names = {"a", "b"};
  Shape tuesday = small();
  tuesday.node_names = {"c", "d"};
  VolatileDisk disk;
  checkpoint_job(disk, monday, {{230, 1}});
  ASSERT_TRUE(finish_job(disk, tuesday, {{70, 4}}));
  expect_fresh_start(disk, monday);
  EXPECT_THAT(files_matching(disk, "/v230-"), IsEmpty());
}

TEST(Finish, LeavesNothingOnTheNodesOfAJobWhoseNameIsUsedOnce) {
  for (const char* const keep : {"nothing", "last"}) {
    const Shape shape =
        small(fmt::format("[finish]\ndirectories = \"remove\"\nkeep = \"{}\"\n", keep));
    VolatileDisk disk;
    ASSERT_TRUE(finish_job(disk, shape, {{1, 4}, {2, 3}}));
    EXPECT_THAT(files_matching(disk, "/memory/"), IsEmpty());
    EXPECT_THAT(files_matching(disk, "/local/"), IsEmpty());
    EXPECT_THAT(files_matching(disk, "/ledger.jsonl"), Not(IsEmpty()));
    // The name can be used again all the same.
    expect_fresh_start(disk, shape);
    checkpoint_job(disk, shape, {{1, 1}});
    EXPECT_EQ(restart_job(disk, shape).version, 1U);
  }
}

TEST(Finish, LeavesTheDirectoriesOfNodesThatWereNotThere) {
  Shape monday = small("[finish]\ndirectories = \"remove\"\n");
  monday.node_names = {"a", "b"};
  Shape tuesday = monday;
  tuesday.node_names = {"c", "d"};
  VolatileDisk disk;
  checkpoint_job(disk, monday, {{230, 1}});
  ASSERT_TRUE(finish_job(disk, tuesday, {{70, 4}}));
  EXPECT_THAT(files_matching(disk, "/memory/"),
              Each(AnyOf(HasSubstr("/a/"), HasSubstr("/b/"), HasSubstr("/identity"))));
  expect_fresh_start(disk, monday);
}

void cut_short_at_any_call(const Shape& shape) {
  for (std::uint64_t call = 0;; call += 3) {
    VolatileDisk disk;
    checkpoint_job(disk, shape, {{1, 4}, {2, 3}});
    FaultKernel kernel(disk, {Fault::stop, call, Call::any, EIO});
    const Status finished = finish_job(kernel, shape, {});
    const bool is_over = !kernel.reached();
    const Restarted restarted = restart_job(disk, shape);
    const bool is_fresh = !restarted.status && restarted.status.error().code == Code::not_found;
    EXPECT_TRUE(restarted.intact) << "stopped at call " << call;
    EXPECT_TRUE(is_fresh || (restarted.version == 2 && !restarted.stepped_back))
        << "stopped at call " << call << ": "
        << (restarted.status ? std::to_string(restarted.version)
                             : restarted.status.error().message);
    if (!is_over && !::testing::Test::HasFailure()) continue;
    EXPECT_TRUE(finished && is_fresh);
    EXPECT_GT(call, 30U) << "the sweep did not sweep";
    return;
  }
}

TEST(Finish, CutShortAtAnyCallEitherHasFinishedOrHasLostNothing) {
  cut_short_at_any_call(small());
  cut_short_at_any_call(small("[finish]\ndirectories = \"remove\"\n"));
}

}  // namespace
}  // namespace diapause::test_support
