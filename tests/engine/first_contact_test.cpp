// Tests what a program is told in its first minutes, and what it is not troubled with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "engine/cluster.hpp"

namespace diapause::test_support {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The messages that contain `part`, of all ranks of the jobs of a shape.
class Heard {
 public:
  Heard(Shape& shape, std::string part) : part_(std::move(part)) {
    shape.log = [this](Severity, const std::string& text) {
      const std::lock_guard lock(mutex_);
      if (text.find(part_) != std::string::npos) texts_.push_back(text);
    };
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::string part_;
  std::mutex mutex_;
  std::vector<std::string> texts_;
};

void nothing(library::Engine&, Program&, std::uint32_t) {}

TEST(FirstContact, VariablesThatASiteSetsAreNamedOnceInTheLog) {
  Shape shape;
  Heard heard(shape, "environment variable");
  shape.adjust = [](library::OpenRequest& request, std::uint32_t) {
    request.environment = {{"DIAPAUSE_ROOT", "/opt/diapause"}, {"DIAPAUSE_HOME", "/opt"}};
  };
  VolatileDisk disk;
  ASSERT_TRUE(run_job(disk, shape, nothing));
  EXPECT_THAT(heard.texts(), ElementsAre(HasSubstr("DIAPAUSE_ROOT, DIAPAUSE_HOME")));
}

Shape in_a_thread_that_may_not_communicate(std::uint32_t nodes) {
  Shape shape;
  shape.ranks = 2 * nodes;
  shape.threads = ThreadJob::Threads::one;
  shape.config = "[async]\nmode = \"thread\"\n";
  return shape;
}

TEST(FirstContact, LessThanThreadMultipleIsToldWithWhatToDoWhereThereAreSeveralNodes) {
  Shape shape = in_a_thread_that_may_not_communicate(2);
  Heard heard(shape, "MPI_THREAD_MULTIPLE");
  VolatileDisk disk;
  ASSERT_TRUE(run_job(disk, shape, nothing));
  EXPECT_THAT(heard.texts(), ElementsAre(AllOf(HasSubstr("MPI_Init_thread("),
                                               HasSubstr("async.mode = \"rank\""))));
}

TEST(FirstContact, LessThanThreadMultipleIsNotWorthALineOnOneNode) {
  Shape shape = in_a_thread_that_may_not_communicate(1);
  Heard heard(shape, "MPI_THREAD_MULTIPLE");
  VolatileDisk disk;
  ASSERT_TRUE(run_job(disk, shape, nothing));
  EXPECT_THAT(heard.texts(), IsEmpty());
}

TEST(FirstContact, LevelsThatMeanNothingOnOneNodeAreToldOnceForAll) {
  Shape shape;
  shape.ranks = 2;
  shape.config =
      "[level1]\nevery_calls = 1\n[level2]\nevery_calls = 2\n[level3]\nevery_calls = 3\n";
  Heard heard(shape, "mean nothing here");
  VolatileDisk disk;
  ASSERT_TRUE(run_job(disk, shape, [](library::Engine& engine, Program&, std::uint32_t) {
    library::CheckpointInfo info;
    for (std::uint64_t call = 1; call <= 7; ++call) {
      EXPECT_TRUE(engine.snapshot(call, info));
      EXPECT_EQ(info.level_asked, 1);
    }
  }));
  EXPECT_THAT(heard.texts(),
              ElementsAre(AllOf(HasSubstr("level 2 needs 2 nodes"), HasSubstr("level 3 needs"))));
}

TEST(IsDue, SaysWhatTheNextSnapshotDoesWhetherThatIsAlwaysCalledOrOnlyIfSo) {
  Shape shape;
  shape.ranks = 4;
  shape.config = "[level1]\nevery_calls = 3\n";
  for (const bool always : {true, false}) {
    VolatileDisk disk;
    ASSERT_TRUE(run_job(disk, shape, [&](library::Engine& engine, Program&, std::uint32_t) {
      std::string pattern;
      for (std::uint64_t call = 1; call <= 9; ++call) {
        const auto is_due = engine.is_due();
        ASSERT_TRUE(is_due);
        pattern += *is_due ? 'x' : '.';
        library::CheckpointInfo info;
        if (always || *is_due) {
          EXPECT_TRUE(engine.snapshot(call, info));
        }
        EXPECT_EQ(info.taken, *is_due);
      }
      EXPECT_EQ(pattern, "..x..x..x");
    }));
  }
}

// A program that takes checkpoints only when the question is answered with yes makes no other call
// in between.
TEST(IsDue, AdvancesWhatTheBackgroundHasToCommunicate) {
  if (std::getenv("DIAPAUSE_TEST_ASYNC") != nullptr) GTEST_SKIP() << "sets its own mode";
  Shape shape = in_a_thread_that_may_not_communicate(2);
  shape.config += "[level1]\nevery_calls = 1000000000\n";  // ranks need not make equally many calls
  VolatileDisk disk;
  ASSERT_TRUE(run_job(disk, shape, [&](library::Engine& engine, Program& program, std::uint32_t) {
    library::CheckpointInfo info;
    program.compute(1);
    EXPECT_TRUE(engine.checkpoint(1, 2, info));
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (engine.poll(1)->in_flight && std::chrono::steady_clock::now() < limit) {
      EXPECT_FALSE(*engine.is_due());
      std::this_thread::yield();
    }
    EXPECT_EQ(engine.poll(1)->level_reached, 2);
  }));
}

TEST(IsDue, IsAnsweredNoMoreAfterACheckpointOfTheProgramsOwn) {
  Shape shape;
  shape.ranks = 2;
  shape.config = "[level1]\nevery_calls = 2\n";
  VolatileDisk disk;
  ASSERT_TRUE(run_job(disk, shape, [&](library::Engine& engine, Program&, std::uint32_t) {
    library::CheckpointInfo info;
    EXPECT_FALSE(*engine.is_due());
    EXPECT_TRUE(*engine.is_due());
    EXPECT_TRUE(*engine.is_due()) << "until it is taken";
    EXPECT_TRUE(engine.checkpoint(1, 1, info));
    EXPECT_FALSE(*engine.is_due());
  }));
}

TEST(BeforeACapture, TheProgramPacksWhatTheCheckpointHolds) {
  Shape shape;
  shape.ranks = 4;
  VolatileDisk disk;
  ASSERT_TRUE(run_job(disk, shape, [&](library::Engine& engine, Program& program, std::uint32_t) {
    std::vector<double> packed;
    int calls = 0;
    engine.on_capture([&]() -> Status {
      packed.assign(static_cast<std::size_t>(100 * ++calls), 3.5);
      program.compute(static_cast<std::uint64_t>(calls));
      library::ProtectedRegion region;
      region.description.name = "packed";
      region.description.type = format::ElementType::float64;
      region.description.element_bytes = sizeof(double);
      region.description.count = packed.size();
      region.data = reinterpret_cast<std::byte*>(packed.data());
      return engine.protect(region);
    });
    library::CheckpointInfo info;
    EXPECT_TRUE(take(engine, 1, 1, info));
    EXPECT_TRUE(take(engine, 2, 1, info));
    EXPECT_EQ(calls, 2);
    EXPECT_TRUE(engine.unprotect("packed"));
    engine.on_capture({});
  }));
  const Restarted restarted = restart_job(disk, shape);
  EXPECT_EQ(restarted.version, 2U);
  EXPECT_TRUE(restarted.intact);
}

TEST(BeforeACapture, OneRankThatIsNotReadyIsAnErrorOnAll) {
  Shape shape;
  shape.ranks = 4;
  VolatileDisk disk;
  ASSERT_TRUE(
      run_job(disk, shape, [&](library::Engine& engine, Program& program, std::uint32_t rank) {
        program.compute(1);
        library::CheckpointInfo info;
        EXPECT_TRUE(take(engine, 1, 1, info));
        engine.on_capture(
            [rank]() -> Status { return rank == 2 ? fail(Code::argument, "not now") : Status{}; });
        const Status refused = engine.checkpoint(2, 1, info);
        ASSERT_FALSE(refused);
        EXPECT_THAT(refused.error().message, AllOf(HasSubstr("rank 2"), HasSubstr("not now")));
        engine.on_capture({});
        program.compute(3);
        EXPECT_TRUE(take(engine, 3, 1, info));
      }));
  EXPECT_EQ(restart_job(disk, shape).version, 3U);
}

}  // namespace
}  // namespace diapause::test_support
