// Files that the program writes, as content of a version: they come back wherever memory does.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "engine/cluster.hpp"
#include "support/value_of.hpp"

namespace diapause::test_support {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Contents = std::map<std::string, std::string>;  // by the path

Shape shape_of(const std::string& config = "") {
  Shape shape;
  shape.ranks = 4;
  shape.config = config + "[level3]\ngroup_nodes = 2\n";
  return shape;
}

// Returns what a rank writes in a version: an empty file, a small one, one below a directory, and
// one of several blocks.
Contents contents_of(std::uint32_t rank, std::uint64_t version) {
  const std::string mark = std::to_string(rank) + " in version " + std::to_string(version);
  std::string large(3 << 20, 'x');
  large.replace(large.size() - mark.size(), mark.size(), mark);
  return {{"empty", ""}, {"small", mark}, {"below/deeper/one.h5", mark + " too"}, {"large", large}};
}

void write_files(sys::Kernel& kernel, const std::string& path, const Contents& contents) {
  for (const auto& [name, text] : contents) {
    sys::Directory directory = value_of(sys::Directory::open_private(kernel, path));
    std::string rest = name;
    for (std::size_t slash = rest.find('/'); slash != std::string::npos; slash = rest.find('/')) {
      directory = value_of(directory.make_child(rest.substr(0, slash)));
      rest = rest.substr(slash + 1);
    }
    ASSERT_TRUE(value_of(directory.create_new_file(rest)).write_all(as_byte_view(text), 0));
  }
}

void read_below(const sys::Directory& directory, const std::string& prefix, Contents& found) {
  for (const sys::DirectoryEntry& entry : value_of(directory.list())) {
    if (entry.is_directory) {
      read_below(value_of(directory.open_child(entry.name)), prefix + entry.name + "/", found);
      continue;
    }
    const sys::File file = value_of(directory.open_file(entry.name, sys::Access::read));
    std::string text(value_of(file.size()), '\0');
    EXPECT_TRUE(file.read_exact(std::as_writable_bytes(std::span(text)), 0));
    found[prefix + entry.name] = text;
  }
}

Contents read_files(sys::Kernel& kernel, const std::string& path) {
  Contents found;
  read_below(value_of(sys::Directory::open_private(kernel, path)), "", found);
  return found;
}

Status take_files(sys::Kernel& kernel, library::Engine& engine, std::uint32_t rank,
                  std::uint64_t version, int level, bool is_valid = true) {
  write_files(kernel, value_of(engine.begin_files()), contents_of(rank, version));
  library::CheckpointInfo info;
  DIAPAUSE_TRY(engine.checkpoint_files(version, level, is_valid, info));
  return engine.wait(version, level, 1000);
}

void checkpoint_files(VolatileDisk& disk, const Shape& shape,
                      const std::vector<std::pair<std::uint64_t, int>>& versions) {
  ASSERT_TRUE(
      run_job(disk, shape, [&](library::Engine& engine, Program& program, std::uint32_t rank) {
        for (const auto& [version, level] : versions) {
          program.compute(version);
          const Status taken = take_files(disk, engine, rank, version, level);
          EXPECT_TRUE(taken) << taken.error().message;
        }
      }));
}

// Files and memory of all ranks.
void expect_version(VolatileDisk& disk, const Shape& shape, std::uint64_t version) {
  const Status opened =
      run_job(disk, shape, [&](library::Engine& engine, Program& program, std::uint32_t rank) {
        program.scramble();
        library::RestartInfo info;
        const Status begun = engine.restart_begin(library::Engine::kNewest, info);
        ASSERT_TRUE(begun) << begun.error().message;
        EXPECT_EQ(info.version, version);
        EXPECT_EQ(read_files(disk, value_of(engine.restore_files())), contents_of(rank, version));
        EXPECT_TRUE(engine.restore({}));
        EXPECT_TRUE(program.holds(version));
        EXPECT_TRUE(engine.restart_end());
      });
  ASSERT_TRUE(opened) << opened.error().message;
}

TEST(FilesOfAVersion, ComeBackAfterTheLossOfANode) {
  for (const int level : {2, 3}) {
    VolatileDisk disk;
    const Shape shape = shape_of();
    checkpoint_files(disk, shape, {{1, level}, {2, level}});
    ASSERT_TRUE(disk.erase(node_directory(disk, "node1"))) << level;
    expect_version(disk, shape, 2);
    EXPECT_THAT(files_matching(disk, "/files/"), IsEmpty())
        << "what was restored is gone at the end";
  }
}

TEST(FilesOfAVersion, ComeBackFromTheGlobalDirectory) {
  for (const char* const config : {"", "[codec]\nmethod = \"zstd\"\n", "[global]\nfiles = 1\n"}) {
    VolatileDisk disk;
    const Shape shape = shape_of(config);
    checkpoint_files(disk, shape, {{1, 4}});
    disk.erase("/memory");
    expect_version(disk, shape, 1);
  }
}

TEST(FilesOfAVersion, AreNoVersionIfARankSaysThatItsOwnAreNotComplete) {
  VolatileDisk disk;
  const Shape shape = shape_of();
  checkpoint_files(disk, shape, {{1, 1}});
  ASSERT_TRUE(
      run_job(disk, shape, [&](library::Engine& engine, Program& program, std::uint32_t rank) {
        program.compute(2);
        const Status refused = take_files(disk, engine, rank, 2, 1, rank != 3);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, Code::argument);
        EXPECT_THAT(refused.error().message, AllOf(HasSubstr("rank 3"), HasSubstr("not complete")));
      }));
  expect_version(disk, shape, 1);
}

TEST(FilesOfAVersion, LeaveTheirDirectoryEmptyForTheNextOne) {
  VolatileDisk disk;
  ASSERT_TRUE(run_job(disk, shape_of(), [&](library::Engine& engine, Program&, std::uint32_t rank) {
    const std::string path = value_of(engine.begin_files());
    ASSERT_TRUE(take_files(disk, engine, rank, 1, 1));
    EXPECT_THAT(read_files(disk, path), IsEmpty());
    EXPECT_EQ(value_of(engine.begin_files()), path);
  }));
  EXPECT_THAT(files_matching(disk, "/files/"), IsEmpty());
}

TEST(FilesOfAVersion, NeedADirectoryThatWasAskedFor) {
  VolatileDisk disk;
  ASSERT_TRUE(run_job(disk, shape_of(), [](library::Engine& engine, Program&, std::uint32_t) {
    library::CheckpointInfo info;
    const Status refused = engine.checkpoint_files(1, 1, true, info);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("no directory was asked for"));
    EXPECT_FALSE(engine.restore_files());
  }));
}

TEST(FilesOfAVersion, ThatAKilledProcessHasLeftAreGoneAtTheNextStart) {
  VolatileDisk disk;
  ASSERT_TRUE(run_job(disk, shape_of(), [&](library::Engine& engine, Program&, std::uint32_t rank) {
    const std::string path = value_of(engine.begin_files());
    write_files(disk, path, contents_of(rank, 1));
    // It lies there as after a kill, and not where this process removes it at its end.
    if (rank == 0) {
      const auto node =
          value_of(sys::Directory::open_private(disk, path.substr(0, path.rfind('/'))));
      ASSERT_TRUE(node.rename("out-r0", node, "left"));
    }
  }));
  EXPECT_FALSE(files_matching(disk, "/files/").empty());
  ASSERT_TRUE(run_job(disk, shape_of(), [](library::Engine&, Program&, std::uint32_t) {}));
  EXPECT_THAT(files_matching(disk, "/files/"), IsEmpty());
}

TEST(FilesOfAVersion, HaveNamesThatNoMemoryMayTake) {
  VolatileDisk disk;
  ASSERT_TRUE(run_job(disk, shape_of(), [](library::Engine& engine, Program&, std::uint32_t) {
    format::Region region;
    region.name = "file:../../elsewhere";
    std::byte memory{};
    region.count = 1;
    const Status refused = engine.protect({region, &memory});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::argument);
  }));
}

}  // namespace
}  // namespace diapause::test_support
