// Tests damaged files. Either the right data comes from elsewhere, or an older version is taken and
// the program is told, or the restart is refused. It never gives garbage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>

#include "engine/cluster.hpp"

namespace diapause::test_support {
namespace {

using ::testing::HasSubstr;

using Damage = std::function<void(VolatileDisk& disk, const std::string& path)>;

void flip(VolatileDisk& disk, const std::string& path, std::size_t byte) {
  ByteVector content = disk.read_content(path).value();
  content[byte % content.size()] ^= std::byte{0x10};
  disk.write_content(path, content);
}

void cut(VolatileDisk& disk, const std::string& path, std::size_t length) {
  ByteVector content = disk.read_content(path).value();
  content.resize(std::min(length, content.size()));
  disk.write_content(path, content);
}

const std::vector<std::pair<std::string, Damage>> kDamages = {
    {"header flipped", [](auto& disk, auto& path) { flip(disk, path, 40); }},
    {"data flipped", [](auto& disk, auto& path) { flip(disk, path, 4096 + 1001); }},
    {"index flipped",
     [](auto& disk, auto& path) { flip(disk, path, disk.read_content(path)->size() - 4096 + 20); }},
    {"emptied", [](auto& disk, auto& path) { cut(disk, path, 0); }},
    {"cut in the header", [](auto& disk, auto& path) { cut(disk, path, 100); }},
    {"cut in the data", [](auto& disk, auto& path) { cut(disk, path, 5000); }},
    {"overwritten",
     [](auto& disk, auto& path) {
       disk.write_content(path, ByteVector(disk.read_content(path)->size(), std::byte{0xee}));
     }},
    {"deleted", [](auto& disk, auto& path) { disk.erase(path); }},
};

// Files of version `number` in the directory of `node` ("" = global tier).
std::vector<std::string> files_of(const VolatileDisk& disk, std::uint64_t number,
                                  const std::string& node) {
  std::vector<std::string> found;
  const std::string root = node.empty() ? "/home/job/" : "/memory/";
  for (const std::string& path : files_matching(disk, "/v" + std::to_string(number) + "-")) {
    if (path.starts_with(root) && (node.empty() || path.find("/" + node + "/") != path.npos))
      found.push_back(path);
  }
  return found;
}

std::string file_of(const VolatileDisk& disk, std::uint64_t number, const std::string& node,
                    const std::string& name) {
  for (const std::string& path : files_of(disk, number, node)) {
    if (path.ends_with("/" + name)) return path;
  }
  ADD_FAILURE() << "no " << name << " of version " << number << " in '" << node << "'";
  return "";
}

// A job that keeps a version to step back to, at every level.
Shape keeping_two() {
  Shape shape;
  shape.config = "[level1]\nkeep = 2\n[level2]\nkeep = 2\n[level3]\nkeep = 2\n";
  return shape;
}

TEST(Integrity, WhatHasOneManifestLeftHasBothAgainAfterTheNextStart) {
  VolatileDisk disk;
  const Shape shape;
  checkpoint_job(disk, shape, {{1, 4}});
  const std::vector<std::string> second = files_matching(disk, "/manifest.b");
  ASSERT_EQ(second.size(), 5u);  // four nodes and the global tier have one each
  std::vector<ByteVector> content;
  for (const std::string& path : second) {
    content.push_back(*disk.read_content(path));
    disk.erase(path);
  }
  ASSERT_TRUE(run_job(disk, shape, [](library::Engine&, Program&, std::uint32_t) {}));
  for (std::size_t i = 0; i < second.size(); ++i)
    EXPECT_EQ(disk.read_content(second[i]), content[i]) << second[i];
}

// Nobody else has a copy of level 1. Versions that the node may hold must not be lost by beginning
// anew.
TEST(Integrity, ANodeWhoseDirectoryCannotBeUsedIsNoFreshStart) {
  VolatileDisk disk;
  const Shape shape;
  checkpoint_job(disk, shape, {{1, 1}});
  const std::string node = node_directory(disk, "node1");
  ASSERT_TRUE(disk.set_owner(node, 12345));
  const Restarted refused = restart_job(disk, shape);
  ASSERT_FALSE(refused.status);
  EXPECT_EQ(refused.status.error().code, Code::denied);
  EXPECT_THAT(refused.status.error().message,
              AllOf(HasSubstr("node1 belongs to"), HasSubstr("make readable what cannot be read")));
  ASSERT_TRUE(disk.set_owner(node, ::geteuid()));
  const Restarted restarted = restart_job(disk, shape);
  EXPECT_EQ(restarted.version, 1u);
  EXPECT_TRUE(restarted.intact);
}

TEST(Integrity, WhatCannotBeReadIsNotCalledDamagedNorGivenUp) {
  VolatileDisk disk;
  const Shape shape = keeping_two();
  checkpoint_job(disk, shape, {{1, 1}, {2, 1}});
  const auto give_to = [&](uid_t owner, const std::string& what) {
    for (const std::string& path : files_matching(disk, what))
      EXPECT_TRUE(disk.set_owner(path, owner)) << path;
  };
  give_to(12345, "/r3.img");
  const Restarted refused = restart_job(disk, shape);
  ASSERT_FALSE(refused.status);
  EXPECT_EQ(refused.status.error().code, Code::io);
  EXPECT_THAT(refused.status.error().message, HasSubstr("make readable"));
  EXPECT_THAT(refused.status.error().message, Not(HasSubstr("prune")));
  give_to(::geteuid(), "/r3.img");
  EXPECT_EQ(restart_job(disk, shape).version, 2u);
}

TEST(Integrity, ADamagedLocalImageIsRepairedFromWhateverTheLevelHas) {
  for (const int level : {2, 3, 4}) {
    for (const auto& [what, damage] : kDamages) {
      Shape shape = keeping_two();
      VolatileDisk disk;
      checkpoint_job(disk, shape, {{6, level}, {7, level}});
      damage(disk, file_of(disk, 7, "node1", "r3.img"));
      const Restarted restarted = restart_job(disk, shape);
      ASSERT_TRUE(restarted.status) << what << ": " << restarted.status.error().message;
      EXPECT_EQ(restarted.version, 7u) << what << " at level " << level;
      EXPECT_FALSE(restarted.stepped_back);
      EXPECT_TRUE(restarted.intact) << what << " at level " << level;
    }
  }
}

TEST(Integrity, WithoutAnotherCopyTheNextOlderVersionIsTakenAndTheProgramIsTold) {
  for (const auto& [what, damage] : kDamages) {
    Shape shape = keeping_two();
    VolatileDisk disk;
    checkpoint_job(disk, shape, {{6, 1}, {7, 1}});
    damage(disk, file_of(disk, 7, "node1", "r3.img"));
    const Restarted restarted = restart_job(disk, shape);
    ASSERT_TRUE(restarted.status) << what << ": " << restarted.status.error().message;
    EXPECT_EQ(restarted.version, 6u) << what;
    EXPECT_TRUE(restarted.stepped_back) << what;
    EXPECT_THAT(restarted.reason, HasSubstr("version 7")) << what;
    EXPECT_TRUE(restarted.intact) << what;
  }
}

TEST(Integrity, WithNothingIntactItRefusesAndTouchesNobodysMemory) {
  for (const auto& [what, damage] : kDamages) {
    Shape shape;
    VolatileDisk disk;
    checkpoint_job(disk, shape, {{7, 1}});
    damage(disk, file_of(disk, 7, "node3", "r7.img"));
    const Restarted restarted = restart_job(disk, shape);
    ASSERT_FALSE(restarted.status) << what;
    EXPECT_EQ(restarted.status.error().code, Code::corrupt) << what;
    EXPECT_TRUE(restarted.intact) << what;
  }
}

TEST(Integrity, ADamagedGlobalFileIsNotDelivered) {
  for (const auto& [what, damage] : kDamages) {
    Shape shape;
    VolatileDisk disk;
    checkpoint_job(disk, shape, {{6, 4}, {7, 4}});
    disk.erase("/memory");
    damage(disk, file_of(disk, 7, "", "r3.img"));
    const Restarted restarted = restart_job(disk, shape);
    ASSERT_TRUE(restarted.status) << what << ": " << restarted.status.error().message;
    EXPECT_EQ(restarted.version, 6u) << what;
    EXPECT_TRUE(restarted.intact) << what;
  }
}

TEST(Integrity, ADamagedFileThatRanksShareIsNotDelivered) {
  for (const auto& [what, damage] : kDamages) {
    Shape shape;
    shape.config = "[global]\nfiles = 3\n";
    VolatileDisk disk;
    checkpoint_job(disk, shape, {{6, 4}, {7, 4}});
    disk.erase("/memory");
    damage(disk, file_of(disk, 7, "", "a1.img"));
    const Restarted restarted = restart_job(disk, shape);
    ASSERT_TRUE(restarted.status) << what << ": " << restarted.status.error().message;
    EXPECT_EQ(restarted.version, 6u) << what;
    EXPECT_TRUE(restarted.intact) << what;
  }
}

TEST(Integrity, DamageInASharedFileCostsOnlyTheImageItHits) {
  Shape shape;
  shape.config = "[global]\nfiles = 1\n";
  VolatileDisk disk;
  checkpoint_job(disk, shape, {{7, 4}});
  disk.erase(node_directory(
      disk, "node0"));  // ranks 0 and 1 need the global tier; the others have their own images
  const std::string shared = file_of(disk, 7, "", "a0.img");
  flip(disk, shared, disk.read_content(shared)->size() - 4096 * 2);
  const Restarted restarted = restart_job(disk, shape);
  ASSERT_TRUE(restarted.status) << restarted.status.error().message;
  EXPECT_EQ(restarted.version, 7u);
  EXPECT_TRUE(restarted.intact);
}

TEST(Integrity, SharedFilesAreFoundThroughTheManifestsOfTheNodes) {
  Shape shape;
  shape.config = "[global]\nfiles = \"auto\"\n";
  VolatileDisk disk;
  checkpoint_job(disk, shape, {{7, 4}});
  disk.erase(node_directory(disk, "node1"));
  for (const std::string& path : files_of(disk, 7, "")) {
    if (path.find("manifest") != path.npos) flip(disk, path, 30);
  }
  const Restarted restarted = restart_job(disk, shape);
  ASSERT_TRUE(restarted.status) << restarted.status.error().message;
  EXPECT_EQ(restarted.version, 7u);
  EXPECT_TRUE(restarted.intact);
}

TEST(Integrity, DamagedCopiesAndParitiesAreNotUsed) {
  for (const auto& [what, damage] : kDamages) {
    for (const int level : {2, 3}) {
      Shape shape = keeping_two();
      VolatileDisk disk;
      checkpoint_job(disk, shape, {{6, level}, {7, level}});
      disk.erase(node_directory(disk, "node1"));
      // Ranks 2 and 3 are gone; the copy of 3 is on node2, and group 1 is {1, 3, 5, 7}.
      damage(disk, level == 2 ? file_of(disk, 7, "node2", "r3.img")
                              : file_of(disk, 7, "node2", "g1-p2.img"));
      const Restarted restarted = restart_job(disk, shape);
      ASSERT_TRUE(restarted.status) << what << ": " << restarted.status.error().message;
      EXPECT_EQ(restarted.version, 6u) << what << " at level " << level;
      EXPECT_TRUE(restarted.intact) << what << " at level " << level;
    }
  }
}

TEST(Integrity, DamageInWhatALostImageIsComputedFromIsFoundAndOtherFilesAreTaken) {
  for (const auto& [what, damage] : kDamages) {
    for (const char* const name : {"r5.img", "g1-p2.img"}) {
      Shape shape = keeping_two();
      shape.config += "parity = 2\n";
      VolatileDisk disk;
      checkpoint_job(disk, shape, {{6, 3}, {7, 3}});
      disk.erase(node_directory(disk, "node1"));
      damage(disk, file_of(disk, 7, "node2", name));
      const Restarted restarted = restart_job(disk, shape);
      ASSERT_TRUE(restarted.status) << what << ": " << restarted.status.error().message;
      EXPECT_EQ(restarted.version, 7u) << what << " of " << name;
      EXPECT_FALSE(restarted.stepped_back) << what << " of " << name;
      EXPECT_TRUE(restarted.intact) << what << " of " << name;
    }
  }
}

TEST(Integrity, OneSoundManifestAnywhereIsEnough) {
  Shape shape;
  VolatileDisk disk;
  checkpoint_job(disk, shape, {{7, 2}});
  for (const std::string& path : files_matching(disk, "manifest")) {
    if (path.find("/node2/") == path.npos || path.ends_with(".a")) flip(disk, path, 30);
  }
  const Restarted restarted = restart_job(disk, shape);
  ASSERT_TRUE(restarted.status) << restarted.status.error().message;
  EXPECT_TRUE(restarted.intact);
}

TEST(Integrity, WithoutASoundManifestThereIsNoVersionAndItSaysWhy) {
  Shape shape = keeping_two();
  VolatileDisk disk;
  checkpoint_job(disk, shape, {{6, 1}, {7, 1}});
  for (const std::string& path : files_matching(disk, "manifest")) {
    if (path.find("/v7-") != path.npos) flip(disk, path, 30);
  }
  const Restarted restarted = restart_job(disk, shape);
  ASSERT_TRUE(restarted.status) << restarted.status.error().message;
  EXPECT_EQ(restarted.version, 6u);
  EXPECT_TRUE(restarted.stepped_back);
  EXPECT_THAT(restarted.reason, HasSubstr("manifest"));
}

TEST(Integrity, SwappedFilesAreDetected) {
  Shape shape = keeping_two();
  shape.elements = 700;
  VolatileDisk disk;
  checkpoint_job(disk, shape, {{6, 1}, {7, 1}});
  const auto swap = [&](const std::string& a, const std::string& b) {
    const ByteVector content_a = disk.read_content(a).value();
    const ByteVector content_b = disk.read_content(b).value();
    disk.write_content(a, content_b);
    disk.write_content(b, content_a);
  };
  swap(file_of(disk, 7, "node0", "r0.img"), file_of(disk, 7, "node0", "r1.img"));
  EXPECT_EQ(restart_job(disk, shape).version, 6u);
  swap(file_of(disk, 7, "node0", "r0.img"), file_of(disk, 7, "node0", "r1.img"));
  EXPECT_EQ(restart_job(disk, shape).version, 7u);
  swap(file_of(disk, 7, "node2", "r4.img"), file_of(disk, 6, "node2", "r4.img"));
  const Restarted both_bad = restart_job(disk, shape);
  EXPECT_FALSE(both_bad.status);
  EXPECT_TRUE(both_bad.intact);
}

TEST(Integrity, AFileOfAnotherJobIsNotTaken) {
  Shape shape = keeping_two();
  VolatileDisk disk;
  VolatileDisk other;
  checkpoint_job(disk, shape, {{6, 1}, {7, 1}});
  checkpoint_job(other, shape, {{6, 1}, {7, 1}});
  disk.write_content(file_of(disk, 7, "node0", "r1.img"),
                     other.read_content(file_of(other, 7, "node0", "r1.img")).value());
  EXPECT_EQ(restart_job(disk, shape).version, 6u);
}

TEST(Integrity, SteppingBackIsNotRepeatedOnceTheJobWentOn) {
  Shape shape = keeping_two();
  VolatileDisk disk;
  checkpoint_job(disk, shape, {{6, 1}, {7, 1}});
  flip(disk, file_of(disk, 7, "node1", "r3.img"), 5000);
  ASSERT_TRUE(run_job(disk, shape, [](library::Engine& engine, Program& program, std::uint32_t) {
    library::RestartInfo info;
    ASSERT_TRUE(engine.restart_begin(library::Engine::kNewest, info));
    ASSERT_TRUE(engine.restart_end());
    library::CheckpointInfo taken;
    program.compute(7);
    EXPECT_TRUE(take(engine, 7, 1, taken));
  }));
  const Restarted restarted = restart_job(disk, shape);
  EXPECT_EQ(restarted.version, 7u);
  EXPECT_FALSE(restarted.stepped_back);
  EXPECT_TRUE(restarted.intact);
}

TEST(Integrity, EveryBitOfASmallVersionMayFlip) {
  Shape shape = keeping_two();
  shape.ranks = 1;
  shape.ranks_per_node = 1;
  shape.elements = 16;
  VolatileDisk disk;
  checkpoint_job(disk, shape, {{6, 1}, {7, 1}});
  for (const std::string& path : files_of(disk, 7, "node0")) {
    const ByteVector content = disk.read_content(path).value();
    for (std::size_t byte = 0; byte < content.size(); byte += path.ends_with(".img") ? 37 : 5) {
      ByteVector damaged = content;
      damaged[byte] ^= std::byte{1} << (byte % 8);
      disk.write_content(path, damaged);
      const Restarted restarted = restart_job(disk, shape);
      ASSERT_TRUE(restarted.status) << path << " byte " << byte;
      EXPECT_TRUE(restarted.version == 6 || restarted.version == 7);
      EXPECT_TRUE(restarted.intact) << path << " byte " << byte;
    }
    disk.write_content(path, content);
  }
}

}  // namespace
}  // namespace diapause::test_support
