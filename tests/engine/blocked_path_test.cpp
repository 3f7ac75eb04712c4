// What a small checkpoint does until the program goes on, call by call
// (docs/life-of-a-checkpoint.md).
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/cluster.hpp"
#include "support/counting_comm.hpp"

namespace diapause::test_support {
namespace {

using Calls = std::map<std::string, int>;

constexpr std::uint64_t kWarmUps = 4;

// What two ranks of a node did in the last of several checkpoints, all alike, of level 1.
struct Done {
  std::vector<Calls> collectives{2};
  std::vector<Calls> files{2};
  std::vector<std::uint64_t> versions;  // of a restart afterwards
};

Calls difference(const Calls& from, const Calls& to) {
  Calls calls;
  for (const auto& [name, count] : to) {
    const auto before = from.find(name);
    const int more = count - (before == from.end() ? 0 : before->second);
    if (more != 0) calls[name] = more;
  }
  return calls;
}

Calls file_calls(const FaultKernel& kernel) {
  Calls calls;
  for (const std::string& line : kernel.trace()) ++calls[line.substr(0, line.find(' '))];
  return calls;
}

class BlockedPath : public ::testing::Test {
 protected:
  void SetUp() override {
    if (in_background()) GTEST_SKIP() << "sets its own mode";
    disk_.say_it_is_memory();
    for (auto& kernel : kernels_) {
      kernel = std::make_unique<FaultKernel>(disk_);
      kernel->record_trace("");
    }
    shape_.ranks = shape_.ranks_per_node = 2;
    shape_.adjust = [this](library::OpenRequest& request, std::uint32_t rank) {
      request.kernel = kernels_[rank].get();
    };
    shape_.watch_comm = [this](std::unique_ptr<comm::Comm> comm, std::uint32_t rank) {
      return std::make_unique<CountingComm>(std::move(comm), collectives_[rank]);
    };
  }

  // `prepare` is called on each rank before its checkpoints.
  Done run(const std::string& mode,
           const std::function<void(library::Engine&, std::uint32_t)>& prepare = {}) {
    shape_.config = "[async]\nmode = \"" + mode + "\"\n";
    Done done;
    const Body body = [&](library::Engine& engine, Program& program, std::uint32_t rank) {
      if (prepare) prepare(engine, rank);
      for (std::uint64_t version = 1; version <= kWarmUps + 1; ++version) {
        program.compute(version);
        collectives_[rank].take();
        const Calls before = file_calls(*kernels_[rank]);
        library::CheckpointInfo info;
        EXPECT_TRUE(engine.checkpoint(version, 1, info));
        done.files[rank] = difference(before, file_calls(*kernels_[rank]));
        done.collectives[rank] = collectives_[rank].take();
        EXPECT_TRUE(engine.wait(version, 1, 60));
        while (engine.poll(version)->in_flight) std::this_thread::yield();
      }
    };
    EXPECT_TRUE(run_job(disk_, shape_, body));
    const Restarted restarted = restart_job(disk_, shape_);
    EXPECT_TRUE(restarted.intact);
    EXPECT_EQ(restarted.version, kWarmUps + 1);
    return done;
  }

  VolatileDisk disk_;
  std::array<std::unique_ptr<FaultKernel>, 2> kernels_;
  std::array<Collectives, 2> collectives_;
  Shape shape_;
};

TEST_F(BlockedPath, InTheBackgroundAllRanksMeetOnce) {
  const Done done = run("thread");
  for (const Calls& of_rank : done.collectives) EXPECT_EQ(of_rank, (Calls{{"all_min", 1}}));
}

// The thread is in the other rank's process.
TEST_F(BlockedPath, InTheBackgroundARankOnlyFindsASlotThatIsFreeAgain) {
  const Done done = run("thread");
  EXPECT_EQ(done.files[1], (Calls{{"fstat", 2}, {"fstatat", 2}, {"renameat", 1}}));
}

TEST_F(BlockedPath, WhereOneRankPacksItsDataFirstAllMeetAgainAfterThat) {
  const Done done = run("thread", [](library::Engine& engine, std::uint32_t rank) {
    if (rank == 1) engine.on_capture([] { return Status(); });
  });
  for (const Calls& of_rank : done.collectives) EXPECT_EQ(of_rank, (Calls{{"all_min", 2}}));
}

TEST_F(BlockedPath, InTheCallRanksMeetForEachStepThatOneOfThemTakesForAll) {
  const Done done = run("off");
  for (const Calls& of_rank : done.collectives)
    EXPECT_EQ(of_rank, (Calls{{"all_min", 4}, {"all_gather", 1}}));
}

TEST_F(BlockedPath, InTheCallTheFirstRankPublishesAndRemovesForAll) {
  const Done done = run("off");
  EXPECT_EQ(done.files[0], (Calls{{"fstat", 2}, {"fstatat", 9}, {"pwrite", 4}, {"renameat", 4}}));
  EXPECT_EQ(done.files[1], (Calls{{"fstat", 1}, {"fstatat", 3}, {"renameat", 2}}));
}

}  // namespace
}  // namespace diapause::test_support
