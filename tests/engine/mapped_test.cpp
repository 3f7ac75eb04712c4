// Restart without copies: regions as memory of the program, checked before or behind its back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/cluster.hpp"

namespace diapause::test_support {
namespace {

using engine::Purpose;
using library::Engine;
using ::testing::HasSubstr;

void damage(VolatileDisk& disk, const std::string& path, std::size_t byte) {
  ByteVector content = disk.read_content(path).value();
  content[byte] ^= std::byte{0x10};
  disk.write_content(path, content);
}

// Rank 3's image of version 7, or the copy of it.
std::string image_on(const VolatileDisk& disk, const std::string& node) {
  for (const std::string& path : files_matching(disk, "/v7-")) {
    if (path.ends_with("/r3.img") && path.find("/" + node + "/") != path.npos) return path;
  }
  ADD_FAILURE() << "no image on " << node;
  return "";
}

// The counter of a mapped version, which says whose it is; 0 if it could not be mapped.
std::uint64_t mapped_counter(Engine& engine) {
  const auto data = engine.map("counter");
  EXPECT_TRUE(data) << data.error().message;
  return data ? *reinterpret_cast<const std::uint64_t*>(*data) : 0;
}

class MappedRestart : public ::testing::TestWithParam<Purpose> {};

TEST_P(MappedRestart, GivesWhatWasStoredFromAnyTier) {
  const std::pair<int, const char*> kWays[] = {
      {1, ""},
      {1, "[local]\npath = \"/memory/disk\"\n[level1]\ntier = \"local\"\n"},
      {2, "lose"},
      {3, "lose"},
      {4, "[global]\nmode = \"direct\"\nfiles = 3\n"}};
  for (const auto& way : kWays) {
    const int level = way.first;
    const char* const config = way.second;
    const bool lose = std::string(config) == "lose";
    Shape shape;
    if (!lose) shape.config = config;
    VolatileDisk disk;
    checkpoint_job(disk, shape, {{7, level}});
    if (lose) disk.erase(node_directory(disk, "node1"));
    const Status opened =
        run_job(disk, shape, [&](Engine& engine, Program& program, std::uint32_t) {
          library::RestartInfo info;
          const Status begun = engine.restart_begin(Engine::kNewest, info, GetParam());
          ASSERT_TRUE(begun) << begun.error().message;
          EXPECT_EQ(mapped_counter(engine), 7u) << config;
          EXPECT_TRUE(engine.map("empty"));
          EXPECT_TRUE(engine.restart_end());
          EXPECT_TRUE(engine.scrub_wait());
          EXPECT_TRUE(program.is_scrambled()) << "nothing is copied to where regions are protected";
        });
    EXPECT_TRUE(opened);
  }
}

TEST_P(MappedRestart, StaysAsItWasWhileVersionsComeAndGo) {
  Shape shape;
  shape.config = "[level1]\nkeep = 1\n";
  VolatileDisk disk;
  const Status opened = run_job(disk, shape, [&](Engine& engine, Program& program, std::uint32_t) {
    library::CheckpointInfo taken;
    library::RestartInfo info;
    for (const std::uint64_t version : {1u, 2u}) {  // the slots of this process go round
      program.compute(version);
      ASSERT_TRUE(engine.checkpoint(version, 1, taken));
    }
    ASSERT_TRUE(engine.restart_begin(Engine::kNewest, info, GetParam()));
    const auto field = engine.map("field");
    ASSERT_TRUE(field);
    const ByteVector before(*field, *field + 700 * sizeof(double));
    ASSERT_TRUE(engine.restart_end());
    for (const std::uint64_t version : {3u, 4u, 5u, 6u}) {
      program.compute(version);
      ASSERT_TRUE(engine.checkpoint(version, 1, taken));
    }
    EXPECT_TRUE(std::equal(before.begin(), before.end(), *field));
    format::Region part;
    part.name = "part";
    part.type = format::ElementType::uint8;
    part.element_bytes = 1;
    part.count = 10;
    ASSERT_TRUE(engine.protect({part, *field + 90}));
    EXPECT_THAT(engine.unmap(*field).error().message, HasSubstr("'part' is protected"));
    EXPECT_TRUE(engine.unprotect("part"));
    EXPECT_TRUE(engine.unmap(*field));
    EXPECT_FALSE(engine.unmap(*field));
  });
  EXPECT_TRUE(opened);
}

INSTANTIATE_TEST_SUITE_P(Checks, MappedRestart,
                         ::testing::Values(Purpose::map_checked, Purpose::map_unchecked));

TEST(MappedRestartCheckedFirst, StepsBackWhereAnImageIsDamaged) {
  Shape shape;
  shape.config = "[level1]\nkeep = 2\n";
  VolatileDisk disk;
  checkpoint_job(disk, shape, {{6, 1}, {7, 1}});
  damage(disk, image_on(disk, "node1"), 5000);
  const Status opened = run_job(disk, shape, [&](Engine& engine, Program&, std::uint32_t) {
    library::RestartInfo info;
    ASSERT_TRUE(engine.restart_begin(Engine::kNewest, info, Purpose::map_checked));
    EXPECT_EQ(info.version, 6u);
    EXPECT_EQ(mapped_counter(engine), 6u);
    EXPECT_TRUE(engine.restart_end());
  });
  EXPECT_TRUE(opened);
}

TEST(Scrub, TellsAllRanksOfDamageNamesTheRegionAndLetsNoCheckpointBeTaken) {
  Shape shape;
  shape.config = "[level1]\nkeep = 2\n";
  VolatileDisk disk;
  checkpoint_job(disk, shape, {{6, 1}, {7, 1}});
  damage(disk, image_on(disk, "node1"), 5000);
  const Status opened = run_job(disk, shape, [&](Engine& engine, Program& program, std::uint32_t) {
    library::RestartInfo info;
    library::CheckpointInfo taken;
    ASSERT_TRUE(engine.restart_begin(Engine::kNewest, info, Purpose::map_unchecked));
    EXPECT_EQ(info.version, 7u);
    EXPECT_TRUE(engine.map("field"));
    EXPECT_TRUE(engine.restart_end());
    const Status found = engine.checkpoint(8, 1, taken);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, Code::corrupt);
    EXPECT_THAT(found.error().message, HasSubstr("r3.img: block 0 of region 'field'"));
    EXPECT_FALSE(engine.scrub_wait()) << "asked again it says the same";
    ASSERT_TRUE(engine.restart_begin(Engine::kNewest, info));
    EXPECT_EQ(info.version, 6u);
    EXPECT_TRUE(engine.restore({}));
    EXPECT_TRUE(engine.restart_end());
    EXPECT_TRUE(program.holds(6));
    EXPECT_TRUE(engine.checkpoint(8, 1, taken));
  });
  EXPECT_TRUE(opened);
}

TEST(Scrub, DoesNotLetDamageIntoTheRedundancyThatARestartPutsBack) {
  Shape shape;
  VolatileDisk disk;
  checkpoint_job(disk, shape, {{7, 2}});
  disk.erase(image_on(disk, "node2"));
  damage(disk, image_on(disk, "node1"), 5000);
  const Status opened = run_job(disk, shape, [&](Engine& engine, Program&, std::uint32_t) {
    library::RestartInfo info;
    ASSERT_TRUE(engine.restart_begin(Engine::kNewest, info, Purpose::map_unchecked));
    EXPECT_TRUE(engine.restart_end());
    EXPECT_FALSE(engine.scrub_wait());
  });
  EXPECT_TRUE(opened);
  EXPECT_EQ(restart_job(disk, shape).status.error().code, Code::corrupt)
      << "not version 7 with sound checksums";
}

TEST(Scrub, IsFinishedBeforeARegionIsCopied) {
  Shape shape;
  VolatileDisk disk;
  checkpoint_job(disk, shape, {{7, 1}});
  damage(disk, image_on(disk, "node1"), 5000);
  const Status opened = run_job(disk, shape, [&](Engine& engine, Program& program, std::uint32_t) {
    library::RestartInfo info;
    ASSERT_TRUE(engine.restart_begin(Engine::kNewest, info, Purpose::map_unchecked));
    EXPECT_FALSE(engine.restore({}));
    EXPECT_TRUE(program.is_scrambled());
    EXPECT_TRUE(engine.restart_end());
  });
  EXPECT_TRUE(opened);
}

TEST(MappedRestartCalls, SayWhatIsWrongWithThem) {
  Shape shape;
  VolatileDisk disk;
  checkpoint_job(disk, shape, {{7, 1}});
  const Status opened = run_job(disk, shape, [&](Engine& engine, Program&, std::uint32_t rank) {
    library::RestartInfo info;
    EXPECT_THAT(engine.map("field").error().message, HasSubstr("no restart is open"));
    const Purpose different = rank == 1 ? Purpose::map_checked : Purpose::map_unchecked;
    EXPECT_FALSE(engine.restart_begin(Engine::kNewest, info, different));
    ASSERT_TRUE(engine.restart_begin(Engine::kNewest, info, Purpose::map_checked));
    EXPECT_THAT(engine.map("nothing").error().message, HasSubstr("holds no region 'nothing'"));
    EXPECT_TRUE(engine.restart_end());
  });
  EXPECT_TRUE(opened);
}

}  // namespace
}  // namespace diapause::test_support
