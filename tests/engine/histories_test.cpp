// Starts of one job on different sets of nodes: what began later is newer, wherever it ran, and
// what is of another history is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "engine/cluster.hpp"

namespace diapause::test_support {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Shape on_nodes(const std::string& first, const std::string& second) {
  Shape shape;
  shape.ranks = 2;
  shape.ranks_per_node = 1;
  shape.node_names = {first, second};
  return shape;
}

// The memory of nodes that are not part of the next start, as it is not to be reached from there.
class Nodes {
 public:
  explicit Nodes(VolatileDisk& disk) : disk_(disk) {}
  void switch_to(const std::string& set) {
    if (!current_.empty()) {
      ASSERT_EQ(disk_.renameat(-100, "/memory", -100, ("/memory-of-" + current_).c_str()), 0);
    }
    (void)disk_.renameat(-100, ("/memory-of-" + set).c_str(), -100, "/memory");
    current_ = set;
  }

 private:
  VolatileDisk& disk_;
  std::string current_;
};

struct Restart {
  Restarted restarted;
  std::string said;
};

Restart restart_and_listen(VolatileDisk& disk, Shape shape) {
  std::mutex mutex;
  Restart result;
  shape.log = [&](Severity, const std::string& line) {
    const std::lock_guard lock(mutex);
    result.said += line + "\n";
  };
  result.restarted = restart_job(disk, shape);
  return result;
}

TEST(Histories, OfALaterStartAreNewerWhereverItRan) {
  VolatileDisk disk;
  Nodes nodes(disk);
  nodes.switch_to("ab");
  checkpoint_job(disk, on_nodes("a", "b"), {{220, 1}, {230, 1}});
  nodes.switch_to("cd");
  checkpoint_job(disk, on_nodes("c", "d"), {{60, 1}, {70, 4}});
  nodes.switch_to("ab");
  const Restart wednesday = restart_and_listen(disk, on_nodes("a", "b"));
  ASSERT_TRUE(wednesday.restarted.status) << wednesday.restarted.status.error().message;
  EXPECT_EQ(wednesday.restarted.version, 70u);
  EXPECT_TRUE(wednesday.restarted.intact);
  EXPECT_THAT(
      wednesday.said,
      HasSubstr("version 230 of start 1 (on a b) is of another one than version 70 of start 2 "
                "(on c d), which is taken"));
}

TEST(Histories, ThatCannotBeReachedAreTold) {
  VolatileDisk disk;
  Nodes nodes(disk);
  nodes.switch_to("ab");
  checkpoint_job(disk, on_nodes("a", "b"), {{230, 1}});
  nodes.switch_to("cd");
  checkpoint_job(disk, on_nodes("c", "d"), {{70, 1}});
  nodes.switch_to("ab");
  const Restart wednesday = restart_and_listen(disk, on_nodes("a", "b"));
  EXPECT_EQ(wednesday.restarted.version, 230u);
  EXPECT_THAT(
      wednesday.said,
      HasSubstr("start 2 (on c d) of 'job' took versions that cannot be reached from here"));
}

TEST(Histories, OfAJobThatGoesOnAreOne) {
  VolatileDisk disk;
  const Shape shape = on_nodes("a", "b");
  checkpoint_job(disk, shape, {{10, 1}, {20, 1}});
  EXPECT_EQ(restart_job(disk, shape).version, 20u);
  const Status again =
      run_job(disk, shape, [](library::Engine& engine, Program& program, std::uint32_t) {
        library::RestartInfo info;
        ASSERT_TRUE(engine.restart_begin(library::Engine::kNewest, info) && engine.restart_end());
        program.compute(15);
        library::CheckpointInfo taken;
        EXPECT_TRUE(take(engine, 15, 1, taken));
      });
  ASSERT_TRUE(again);
  const Restart last = restart_and_listen(disk, shape);
  EXPECT_EQ(last.restarted.version, 15u);
  EXPECT_THAT(last.said, Not(HasSubstr("histories")));
}

TEST(Histories, AreNotMixedWhenTheFileOfStartsIsDamaged) {
  VolatileDisk disk;
  const Shape shape = on_nodes("a", "b");
  checkpoint_job(disk, shape, {{10, 1}});
  const std::string path = files_matching(disk, "/starts").at(0);
  disk.write_content(path, as_byte_view(std::string_view("nonsense")));
  checkpoint_job(disk, shape, {{5, 1}});
  EXPECT_EQ(restart_job(disk, shape).version, 5u);
}

}  // namespace
}  // namespace diapause::test_support
