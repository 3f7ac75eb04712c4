// Tests which losses each level survives, for every combination of lost nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/cluster.hpp"

namespace diapause::test_support {
namespace {

using ::testing::HasSubstr;

bool lost(unsigned mask, unsigned node) { return (mask >> node & 1u) != 0; }

// The table of the README, written down independently of the code.
bool survives(int level, unsigned mask, unsigned nodes, unsigned parity) {
  const unsigned count = static_cast<unsigned>(__builtin_popcount(mask));
  switch (level) {
    case 1:
      return count == 0;
    case 2:
      for (unsigned node = 0; node < nodes; ++node) {
        if (lost(mask, node) && lost(mask, (node + 1) % nodes)) return false;
      }
      return true;
    case 3:
      return count <= parity;
    default:
      return true;
  }
}

struct Case {
  int level;
  unsigned parity;
  std::string tier;
  unsigned nodes = 4;
  std::string files = "\"rank\"";  // setting of the global tier
};

class LossMatrix : public ::testing::TestWithParam<Case> {};

TEST_P(LossMatrix, RestoresExactlyWhatTheTableSays) {
  const auto [level, parity, tier, nodes, files] = GetParam();
  Shape shape;
  shape.ranks = 2 * nodes;
  shape.config = "[local]\npath = \"/memory/disk\"\n[level1]\ntier = \"" + tier +
                 "\"\n[level2]\ntier = \"" + tier + "\"\n[level3]\ntier = \"" + tier +
                 "\"\nparity = " + std::to_string(parity) +
                 "\ngroup_nodes = " + std::to_string(nodes) + "\n[global]\nfiles = " + files + "\n";
  for (unsigned mask = 0; mask < 1u << nodes; ++mask) {
    VolatileDisk disk;
    checkpoint_job(disk, shape, {{7, level}});
    for (unsigned node = 0; node < nodes; ++node) {
      if (!lost(mask, node)) continue;
      const std::string name = "/node" + std::to_string(node) + "/";
      for (const std::string& path : disk.paths()) {
        if (path.ends_with(name)) disk.erase(path);
      }
    }
    const Restarted restarted = restart_job(disk, shape);
    const bool expected = survives(level, mask, nodes, parity);
    EXPECT_EQ(static_cast<bool>(restarted.status), expected)
        << "level " << level << ", lost nodes " << mask
        << (restarted.status ? "" : ": " + restarted.status.error().message);
    EXPECT_TRUE(restarted.intact) << "level " << level << ", lost nodes " << mask;
    EXPECT_EQ(restarted.version, expected ? 7u : 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, LossMatrix,
                         ::testing::Values(Case{1, 1, "memory"}, Case{2, 1, "memory"},
                                           Case{3, 1, "memory"}, Case{3, 2, "memory"},
                                           Case{3, 3, "memory"}, Case{4, 1, "memory"},
                                           Case{1, 1, "local"}, Case{2, 1, "local"},
                                           Case{3, 2, "local"}, Case{4, 1, "local"}),
                         [](const auto& test) {
                           return "L" + std::to_string(test.param.level) + "m" +
                                  std::to_string(test.param.parity) + test.param.tier;
                         });

INSTANTIATE_TEST_SUITE_P(SharedFiles, LossMatrix,
                         ::testing::Values(Case{4, 1, "memory", 4, "3"},
                                           Case{4, 1, "local", 4, "\"auto\""}),
                         [](const auto& test) { return test.param.tier; });

INSTANTIATE_TEST_SUITE_P(LongEightNodes, LossMatrix,
                         ::testing::Values(Case{1, 1, "memory", 8}, Case{2, 1, "memory", 8},
                                           Case{3, 1, "memory", 8}, Case{3, 2, "memory", 8},
                                           Case{3, 4, "memory", 8}, Case{4, 1, "memory", 8}),
                         [](const auto& test) {
                           return "L" + std::to_string(test.param.level) + "m" +
                                  std::to_string(test.param.parity);
                         });

TEST(Recovery, PutsBackTheRedundancySoThatTheNextNodeMayBeLostToo) {
  for (const int level : {2, 3}) {
    Shape shape;
    VolatileDisk disk;
    checkpoint_job(disk, shape, {{7, level}});
    for (const char* node : {"node1", "node2", "node3", "node0", "node2"}) {
      ASSERT_TRUE(disk.erase(node_directory(disk, node)));
      const Restarted restarted = restart_job(disk, shape);
      ASSERT_TRUE(restarted.status) << restarted.status.error().message;
      EXPECT_EQ(restarted.version, 7u);
      EXPECT_TRUE(restarted.intact);
    }
  }
}

TEST(Recovery, BringsImagesThatComeInManyPieces) {
  for (const int level : {2, 3}) {
    Shape shape;
    shape.ranks = 2;
    shape.ranks_per_node = 1;
    shape.elements = (22 * kMiB + 1000) / sizeof(double);
    shape.config = "[level3]\ngroup_nodes = 2\n";
    VolatileDisk disk;
    checkpoint_job(disk, shape, {{7, level}});
    for (const char* node : {"node1", "node0"}) {
      ASSERT_TRUE(disk.erase(node_directory(disk, node)));
      const Restarted restarted = restart_job(disk, shape);
      ASSERT_TRUE(restarted.status) << restarted.status.error().message;
      EXPECT_TRUE(restarted.intact) << "level " << level << ", " << node;
    }
  }
}

TEST(Recovery, PutsBackWhatIsMissingAndLeavesTheRestAsItIs) {
  for (const int level : {2, 3}) {
    for (const std::string tier : {"memory", "local"}) {
      Shape shape;
      shape.config = "[local]\npath = \"/memory/disk\"\n[level" + std::to_string(level) +
                     "]\ntier = \"" + tier + "\"\n";
      VolatileDisk disk;
      checkpoint_job(disk, shape, {{7, level}});
      const std::vector<std::string> before = files_matching(disk, "/v7-");
      for (const std::string& path : disk.paths()) {
        if (path.ends_with("/node1/")) disk.erase(path);
      }
      ASSERT_NE(files_matching(disk, "/v7-"), before);
      ASSERT_TRUE(restart_job(disk, shape).intact);
      // The names of the directories have the checkpoint's commit in them: nothing was taken anew.
      EXPECT_EQ(files_matching(disk, "/v7-"), before) << "level " << level << ", " << tier;
    }
  }
}

// Stops a restart that puts files back at every `stride`-th call. Another restart gets the version
// and puts back the rest, so that then the other node may be lost.
void sweep_repair(std::uint64_t stride) {
  for (const int level : {2, 3}) {
    Shape shape;
    shape.ranks = 2;
    shape.ranks_per_node = 1;
    shape.config = "[level3]\ngroup_nodes = 2\n";
    bool is_over = false;
    for (std::uint64_t call = 0; !is_over; call += stride) {
      VolatileDisk disk;
      checkpoint_job(disk, shape, {{7, level}});
      disk.erase(node_directory(disk, "node1"));
      FaultKernel kernel(disk, {Fault::stop, call, Call::any, EIO});
      (void)restart_job(kernel, shape);
      is_over = !kernel.reached();
      const std::string where =
          "level " + std::to_string(level) + ", stopped at call " + std::to_string(call);
      const Restarted again = restart_job(disk, shape);
      ASSERT_TRUE(again.status) << where << ": " << again.status.error().message;
      ASSERT_TRUE(again.intact && again.version == 7) << where;
      disk.erase(node_directory(disk, "node0"));
      const Restarted from_other = restart_job(disk, shape);
      ASSERT_TRUE(from_other.status)
          << where << ", then lost node0: " << from_other.status.error().message;
      ASSERT_TRUE(from_other.intact) << where;
      ASSERT_TRUE(!is_over || call > 100) << "the sweep did not sweep";
    }
  }
}

TEST(RepairSweep, StoppingAtSomeCallsLosesNothing) { sweep_repair(11); }
TEST(LongRepairSweep, StoppingAtAnyCallLosesNothing) { sweep_repair(1); }

TEST(Recovery, FollowsRanksToOtherNodes) {
  for (const int level : {1, 2, 3, 4}) {
    Shape shape;
    VolatileDisk disk;
    checkpoint_job(disk, shape, {{7, level}});
    Shape moved = shape;
    moved.node_names = {"node2", "node3", "node1", "node0"};
    const Restarted restarted = restart_job(disk, moved);
    ASSERT_TRUE(restarted.status) << restarted.status.error().message;
    EXPECT_TRUE(restarted.intact);
  }
}

TEST(Recovery, WorksWithAReplacementNodeOfAnotherName) {
  for (const int level : {2, 3}) {
    Shape shape;
    VolatileDisk disk;
    checkpoint_job(disk, shape, {{7, level}});
    disk.erase(node_directory(disk, "node2"));
    Shape replaced = shape;
    replaced.node_names = {"node0", "node1", "spare7", "node3"};
    const Restarted restarted = restart_job(disk, replaced);
    ASSERT_TRUE(restarted.status) << restarted.status.error().message;
    EXPECT_TRUE(restarted.intact);
    disk.erase(node_directory(disk, "node0"));
    EXPECT_TRUE(restart_job(disk, replaced).status);
  }
}

TEST(Recovery, WorksWithNodesOfDifferentRankCounts) {
  for (const int level : {2, 3}) {
    for (const char* node : {"node0", "node1", "node2"}) {
      Shape shape;
      shape.ranks = 5;  // the nodes have two, two and one
      VolatileDisk disk;
      checkpoint_job(disk, shape, {{7, level}});
      disk.erase(node_directory(disk, node));
      const Restarted restarted = restart_job(disk, shape);
      ASSERT_TRUE(restarted.status) << level << node << restarted.status.error().message;
      EXPECT_TRUE(restarted.intact);
    }
  }
}

TEST(Recovery, RefusesAnotherNumberOfRanksAndLosesNothing) {
  Shape shape;
  VolatileDisk disk;
  checkpoint_job(disk, shape, {{7, 4}});
  Shape fewer = shape;
  fewer.ranks = 6;
  const Restarted refused = restart_job(disk, fewer);
  ASSERT_FALSE(refused.status);
  EXPECT_EQ(refused.status.error().code, Code::mismatch);
  EXPECT_THAT(refused.status.error().message, HasSubstr("8 ranks"));
  EXPECT_TRUE(refused.intact);
  EXPECT_TRUE(run_job(disk, fewer, [](library::Engine& engine, Program&, std::uint32_t) {
    library::CheckpointInfo info;
    EXPECT_EQ(take(engine, 8, 1, info).error().code, Code::mismatch);
  }));
  EXPECT_TRUE(restart_job(disk, shape).status);
}

}  // namespace
}  // namespace diapause::test_support
