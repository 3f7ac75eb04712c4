// Checkpoints in three steps: begun, added to, and committed or given up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "engine/cluster.hpp"

namespace diapause::test_support {
namespace {

using ::testing::HasSubstr;

library::ProtectedRegion numbers(const std::string& name, std::vector<std::uint64_t>& values) {
  library::ProtectedRegion region;
  region.description.name = name;
  region.description.type = format::ElementType::uint64;
  region.description.element_bytes = sizeof(std::uint64_t);
  region.description.count = values.size();
  region.data = reinterpret_cast<std::byte*>(values.data());
  return region;
}

Status commit(library::Engine& engine, std::uint64_t version, int level) {
  library::CheckpointInfo info;
  Status committed = engine.commit_checkpoint(info);
  if (committed && in_background()) committed = engine.wait(version, level, 60);
  return committed;
}

TEST(CheckpointInSteps, HoldsWhatIsProtectedAndWhatWasAdded) {
  for (const int level : {1, 2, 3, 4}) {
    VolatileDisk disk;
    ASSERT_TRUE(
        run_job(disk, {}, [&](library::Engine& engine, Program& program, std::uint32_t rank) {
          program.compute(5);
          library::CheckpointInfo info;
          ASSERT_TRUE(engine.begin_checkpoint(5, level, info));
          EXPECT_FALSE(info.taken);
          std::vector<std::uint64_t> list(10 + rank, rank);  // each rank adds what it has
          EXPECT_TRUE(engine.add_to_checkpoint(numbers("list", list)));
          const Status committed = commit(engine, 5, level);
          EXPECT_TRUE(committed) << committed.error().message;
          list.assign(list.size(), 99);  // it is the program's again
        }));
    ASSERT_TRUE(
        run_job(disk, {}, [&](library::Engine& engine, Program& program, std::uint32_t rank) {
          std::vector<std::uint64_t> list(10 + rank);
          EXPECT_TRUE(engine.protect(numbers("list", list)));
          library::RestartInfo info;
          EXPECT_TRUE(engine.restart(library::Engine::kNewest, info));
          EXPECT_TRUE(program.holds(5));
          EXPECT_EQ(list, std::vector<std::uint64_t>(10 + rank, rank));
        }));
  }
}

TEST(CheckpointInSteps, IsNoVersionIfOneRankGivesItUp) {
  VolatileDisk disk;
  checkpoint_job(disk, {}, {{4, 1}});
  ASSERT_TRUE(run_job(disk, {}, [&](library::Engine& engine, Program& program, std::uint32_t rank) {
    program.compute(5);
    library::CheckpointInfo info;
    ASSERT_TRUE(engine.begin_checkpoint(5, 2, info));
    if (rank == 3) {
      EXPECT_TRUE(engine.give_up_checkpoint("its list is torn"));
    } else {
      const Status refused = engine.commit_checkpoint(info);
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code, Code::argument);
      EXPECT_THAT(refused.error().message, HasSubstr("its list is torn"));
    }
    program.compute(6);
    EXPECT_TRUE(take(engine, 6, 1, info)) << "the next one is not concerned";
  }));
  EXPECT_EQ(restart_job(disk, {}).version, 6U);
  EXPECT_EQ(restart_job(disk, {}, 5).status.error().code, Code::not_found);
}

TEST(CheckpointInSteps, IsTheOnlyOneThatIsOpen) {
  VolatileDisk disk;
  ASSERT_TRUE(run_job(disk, {}, [&](library::Engine& engine, Program& program, std::uint32_t) {
    program.compute(1);
    std::vector<std::uint64_t> list(3);
    library::CheckpointInfo info;
    library::RestartInfo restart;
    EXPECT_EQ(engine.add_to_checkpoint(numbers("list", list)).error().code, Code::argument);
    EXPECT_EQ(engine.commit_checkpoint(info).error().code, Code::argument);
    ASSERT_TRUE(engine.begin_checkpoint(1, 1, info));
    EXPECT_EQ(engine.begin_checkpoint(2, 1, info).error().code, Code::argument);
    EXPECT_EQ(engine.checkpoint(2, 1, info).error().code, Code::argument);
    EXPECT_EQ(engine.restart(library::Engine::kNewest, restart).error().code, Code::argument);
    EXPECT_TRUE(engine.add_to_checkpoint(numbers("list", list)));
    EXPECT_EQ(engine.add_to_checkpoint(numbers("list", list)).error().code, Code::argument)
        << "it is there";
    EXPECT_TRUE(commit(engine, 1, 1));
    EXPECT_EQ(engine.give_up_checkpoint("").error().code, Code::argument) << "none is open";
  }));
  EXPECT_TRUE(restart_job(disk, {}).intact);
}

TEST(CheckpointInSteps, CanBeLeftOpenAtTheEnd) {
  VolatileDisk disk;
  checkpoint_job(disk, {}, {{4, 1}});
  ASSERT_TRUE(run_job(disk, {}, [&](library::Engine& engine, Program&, std::uint32_t) {
    library::CheckpointInfo info;
    ASSERT_TRUE(engine.begin_checkpoint(5, 1, info));
  }));
  EXPECT_EQ(restart_job(disk, {}).version, 4U);
}

}  // namespace
}  // namespace diapause::test_support
