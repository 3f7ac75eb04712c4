// A global tier that is slow, full, gone or read-only while versions are on their way to it behind
// the program: what was reached stays, the next call tells what is wrong, and the engine goes on
// when the tier is back.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "engine/cluster.hpp"
#include "engine/ledger_events.hpp"

namespace diapause::test_support {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kGlobal = "/home/job/diapause";

// Changes below the global directory fail with an error, for as long as one is set, as a read-only
// file system does it; or nothing there can be opened at all.
class TroubledKernel final : public sys::Kernel {
 public:
  explicit TroubledKernel(VolatileDisk& disk) : disk_(disk) {}

  std::atomic<int> error = 0;  // 0 for none
  std::string only;            // if set, of those only with this in their path
  std::atomic<bool> hides_all = false;
  std::atomic<bool> removes_slowly = false;

  int openat(int directory, const char* path, int flags, mode_t mode) override {
    const std::string full = path_of(directory, path);
    const bool changes = (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0;
    if ((changes || hides_all) && is_troubled(full)) return -error;
    const int fd = disk_.openat(directory, path, flags, mode);
    const std::lock_guard lock(mutex_);
    if (fd >= 0) paths_[fd] = full;
    return fd;
  }
  std::int64_t pwrite(int fd, ByteView data, std::uint64_t offset) override {
    return is_troubled(path_of(fd)) ? -error : disk_.pwrite(fd, data, offset);
  }
  int fallocate(int fd, std::uint64_t offset, std::uint64_t length) override {
    return is_troubled(path_of(fd)) ? -error : disk_.fallocate(fd, offset, length);
  }
  int mkdirat(int directory, const char* path, mode_t mode) override {
    if (!is_troubled(path_of(directory, path))) return disk_.mkdirat(directory, path, mode);
    const int there =
        disk_.openat(directory, path, O_RDONLY | O_DIRECTORY, 0);  // is said before anything else
    if (there >= 0) disk_.close(there);
    return there >= 0 ? -EEXIST : -error;
  }
  int renameat(int from, const char* from_path, int to, const char* to_path) override {
    return is_troubled(path_of(to, to_path)) ? -error
                                             : disk_.renameat(from, from_path, to, to_path);
  }
  int unlinkat(int directory, const char* path, int flags) override {
    const std::string full = path_of(directory, path);
    if (removes_slowly && full.starts_with(kGlobal))
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return is_troubled(full) ? -error : disk_.unlinkat(directory, path, flags);
  }

  int close(int fd) override { return disk_.close(fd); }
  std::int64_t pread(int fd, MutableBytes data, std::uint64_t offset) override {
    return disk_.pread(fd, data, offset);
  }
  int fsync(int fd) override { return disk_.fsync(fd); }
  int ftruncate(int fd, std::uint64_t length) override { return disk_.ftruncate(fd, length); }
  int fstat(int fd, struct stat* out) override { return disk_.fstat(fd, out); }
  int fstatvfs(int fd, sys::FileSystemSpace* out) override { return disk_.fstatvfs(fd, out); }
  int list(int directory, std::vector<sys::DirectoryEntry>* out) override {
    return disk_.list(directory, out);
  }
  int try_lock(int fd) override { return disk_.try_lock(fd); }
  int unlock(int fd) override { return disk_.unlock(fd); }
  std::byte* map_shared(int fd, std::uint64_t length, int* failed) override {
    return disk_.map_shared(fd, length, failed);
  }
  std::byte* map_private(int fd, std::uint64_t offset, std::uint64_t length, int* failed) override {
    return disk_.map_private(fd, offset, length, failed);
  }
  int unmap(std::byte* base, std::uint64_t length) override { return disk_.unmap(base, length); }

 private:
  bool is_troubled(const std::string& path) const {
    return error != 0 && path.starts_with(kGlobal) && path.find(only) != path.npos;
  }
  std::string path_of(int fd) {
    const std::lock_guard lock(mutex_);
    return paths_[fd];
  }
  std::string path_of(int directory, const char* path) {
    return directory == AT_FDCWD || path[0] == '/' ? path : path_of(directory) + "/" + path;
  }

  VolatileDisk& disk_;
  std::mutex mutex_;
  std::unordered_map<int, std::string> paths_;
};

class GlobalTrouble : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::getenv("DIAPAUSE_TEST_ASYNC") != nullptr) GTEST_SKIP() << "sets its own mode";
    shape_.ranks = 4;
    shape_.config =
        std::string("[global]\nfiles = ") + GetParam() + "\n[async]\nmode = \"thread\"\n";
  }

  // Version 1 arrives; `begin` makes the trouble, in which version 2 fails and leaves the level
  // that it had; the next call says so; after `end` version 4 arrives.
  void go_through(const std::function<void()>& begin, const std::function<void()>& end,
                  const std::string& named) {
    const auto once = [](std::uint32_t rank, library::Engine& engine, std::uint64_t version,
                         const auto& act) {
      library::CheckpointInfo info;  // a checkpoint of level 1 keeps the ranks in step
      if (rank == 0) act();
      EXPECT_TRUE(engine.checkpoint(version, 1, info));
      EXPECT_TRUE(engine.wait(version, 1, 60));
    };
    const Status opened = run_job(
        kernel_, shape_, [&](library::Engine& engine, Program& program, std::uint32_t rank) {
          library::CheckpointInfo info;
          program.compute(1);
          EXPECT_TRUE(engine.checkpoint(1, 4, info));
          EXPECT_TRUE(engine.wait(1, 4, 60));
          once(rank, engine, 2, begin);
          program.compute(3);
          EXPECT_TRUE(engine.checkpoint(3, 4, info));
          while (engine.poll(3)->in_flight) std::this_thread::yield();
          EXPECT_EQ(engine.poll(3)->level_reached, 1) << "what was reached stays";
          program.compute(4);
          EXPECT_TRUE(engine.checkpoint(4, 1, info));
          EXPECT_EQ(info.background_version, 3u);
          EXPECT_THAT(engine.background_reason(), HasSubstr(named));
          EXPECT_TRUE(engine.wait(4, 1, 60));
          once(rank, engine, 5, end);
          program.compute(6);
          EXPECT_TRUE(engine.checkpoint(6, 4, info));
          const Status reached = engine.wait(6, 4, 60);
          EXPECT_TRUE(reached) << reached.error().message;
        });
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_THAT(spares(), testing::IsEmpty()) << "nothing of the failed version takes room";
    disk_.erase("/memory");
    const Restarted restarted = restart_job(disk_, shape_);
    EXPECT_TRUE(restarted.status) << restarted.status.error().message;
    EXPECT_EQ(restarted.version, 6u);
    EXPECT_TRUE(restarted.intact);
  }

  void go_through_error(int error) {
    go_through([&] { kernel_.error = error; }, [&] { kernel_.error = 0; }, std::string(kGlobal));
  }

  // Returns the files in spare/ of the only job of the global tier.
  std::vector<std::string> spares() {
    std::vector<sys::DirectoryEntry> jobs;
    std::vector<sys::DirectoryEntry> files;
    const int root = disk_.openat(AT_FDCWD, kGlobal.data(), O_RDONLY | O_DIRECTORY, 0);
    EXPECT_EQ(disk_.list(root, &jobs), 0);
    std::erase_if(jobs, [](const sys::DirectoryEntry& entry) { return !entry.is_directory; });
    EXPECT_EQ(jobs.size(), 1u);
    const int spare =
        disk_.openat(root, (jobs.at(0).name + "/spare").c_str(), O_RDONLY | O_DIRECTORY, 0);
    EXPECT_EQ(disk_.list(spare, &files), 0);
    disk_.close(spare);
    disk_.close(root);
    std::vector<std::string> names;
    for (const sys::DirectoryEntry& file : files) names.push_back(file.name);
    return names;
  }

  VolatileDisk disk_;
  TroubledKernel kernel_{disk_};
  Shape shape_;
};

TEST_P(GlobalTrouble, FullIsToldAndGoesOnWithRoom) { go_through_error(ENOSPC); }
TEST_P(GlobalTrouble, ReadOnlyIsToldAndGoesOnWhenItIsNot) { go_through_error(EROFS); }
TEST_P(GlobalTrouble, ForbiddenIsToldAndGoesOnWhenItIsNot) { go_through_error(EACCES); }
TEST_P(GlobalTrouble, GoneIsToldAndGoesOnWhenItIsThere) {
  go_through(
      [&] {
        disk_.erase(std::string(kGlobal));
        kernel_.error = ENOENT;
      },
      [&] { kernel_.error = 0; }, std::string(kGlobal));
}

TEST_P(GlobalTrouble, FullForOneNodeLeavesNoFilesBehind) {
  kernel_.only = "/spare/o4-";  // the files of the first node; the second gets its own
  go_through_error(ENOSPC);
}

TEST_P(GlobalTrouble, SlowHoldsNoLevelBelowItBack) {
  shape_.config += "flush_mib_s = 0.04\nin_flight = 4\n";
  const Status opened =
      run_job(kernel_, shape_, [&](library::Engine& engine, Program& program, std::uint32_t) {
        library::CheckpointInfo info;
        program.compute(1);
        EXPECT_TRUE(engine.checkpoint(1, 4, info));
        EXPECT_TRUE(engine.wait(1, 1, 60));
        EXPECT_TRUE(engine.poll(1)->in_flight);
        EXPECT_TRUE(engine.wait(1, 4, 60));
      });
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(restart_job(disk_, shape_).version, 1u);
}

// Versions that it may hold must not be lost by beginning anew.
TEST(GlobalTier, ThatCannotBeReadIsNoFreshStart) {
  VolatileDisk disk;
  TroubledKernel kernel(disk);
  Shape shape;
  checkpoint_job(kernel, shape, {{1, 4}});
  disk.erase("/memory");
  kernel.hides_all = true;
  kernel.error = EIO;
  const Restarted refused = restart_job(kernel, shape);
  ASSERT_FALSE(refused.status);
  EXPECT_EQ(refused.status.error().code, Code::io);
  EXPECT_THAT(refused.status.error().message, testing::HasSubstr("it may hold checkpoints"));
  kernel.error = 0;
  EXPECT_EQ(restart_job(kernel, shape).version, 1u);
}

// The trouble is that of the ledger's file alone.
class LedgerTrouble : public ::testing::Test {
 protected:
  LedgerTrouble() {
    kernel.only = "ledger.jsonl";
    shape.ranks = 1;
    shape.log = [this](Severity severity, const std::string& text) {
      if (severity == Severity::warning) warnings.push_back(text);
    };
  }
  VolatileDisk disk;
  TroubledKernel kernel{disk};
  Shape shape;
  std::vector<std::string> warnings;
};

// A file system that is full loses nothing of the account: lines wait, and are written in their
// order, once.
TEST_F(LedgerTrouble, OfADiskThatIsFullForAWhileLosesNoLine) {
  const Status opened =
      run_job(kernel, shape, [&](library::Engine& engine, Program& program, std::uint32_t) {
        for (std::uint64_t version = 1; version <= 6; ++version) {
          kernel.error = version == 2 || version == 3 ? ENOSPC : 0;
          program.compute(version);
          library::CheckpointInfo info;
          EXPECT_TRUE(take(engine, version, 4, info)) << version;
        }
      });
  ASSERT_TRUE(opened) << opened.error().message;
  std::vector<std::uint64_t> told;
  for (const nlohmann::json& event : ledger_events(disk, "checkpoint"))
    told.push_back(event["version"]);
  EXPECT_THAT(told, testing::ElementsAre(1, 2, 3, 4, 5, 6));
}

// More lines wait than memory is kept for: the oldest are lost, and the ledger and the log say so.
TEST_F(LedgerTrouble, OfADiskThatIsFullForLongIsToldWithTheLinesItCost) {
  shape.config = "[capture]\nstrategy = \"copy\"\n";
  constexpr std::uint64_t kVersions = engine::LedgerWriter::kMostWaiting + 20;
  ASSERT_TRUE(run_job(kernel, shape, [&](library::Engine& engine, Program&, std::uint32_t) {
    for (std::uint64_t version = 1; version <= kVersions; ++version) {
      kernel.error = version == 1 || version == kVersions ? 0 : ENOSPC;
      library::CheckpointInfo info;
      EXPECT_TRUE(take(engine, version, 1, info)) << version;
    }
  }));
  const auto lost = ledger_events(disk, "lost");
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_GE(lost[0]["lines"], 18u);
  EXPECT_THAT(warnings,
              testing::Contains(HasSubstr(lost[0]["lines"].dump() +
                                          " lines of ledger.jsonl could not be written")));
  std::vector<std::uint64_t> numbers;
  for (const nlohmann::json& line : ledger_events(disk, "energy"))
    numbers.push_back(line["number"]);
  EXPECT_TRUE(std::ranges::is_sorted(numbers));
}

TEST_F(LedgerTrouble, OfADiskThatStaysFullIsTold) {
  ASSERT_TRUE(run_job(kernel, shape, [&](library::Engine& engine, Program&, std::uint32_t) {
    kernel.error = ENOSPC;
    library::CheckpointInfo info;
    EXPECT_TRUE(take(engine, 1, 1, info));
  }));
  EXPECT_THAT(warnings, testing::Contains(HasSubstr("lines of ledger.jsonl could not be written")));
}

// One removes the old version that makes room, and all look for it.
TEST(GlobalRoom, IsThereOnceAnOldVersionIsGone) {
  VolatileDisk disk;
  TroubledKernel kernel(disk);
  Shape shape;
  shape.ranks = 4;
  shape.ranks_per_node = 1;
  shape.elements = 4000;
  shape.config = "[global]\nmode = \"direct\"\n[level4]\nkeep = 3\n";
  disk.set_capacity(520 * 1024);  // there is room for two versions and a half
  kernel.removes_slowly = true;
  ASSERT_TRUE(run_job(kernel, shape, [](library::Engine& engine, Program& program, std::uint32_t) {
    for (std::uint64_t version = 1; version <= 4; ++version) {
      program.compute(version);
      library::CheckpointInfo info;
      const Status done = take(engine, version, 4, info);
      EXPECT_TRUE(done) << done.error().message;
    }
  }));
  expect_restart_from_global(disk, shape, 4);
}

INSTANTIATE_TEST_SUITE_P(, GlobalTrouble, ::testing::Values("\"rank\"", "1", "2"),
                         [](const auto& test) { return "Files" + std::to_string(test.index); });

}  // namespace
}  // namespace diapause::test_support
