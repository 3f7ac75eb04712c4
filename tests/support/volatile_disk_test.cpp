#include "support/volatile_disk.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <set>
#include <string>
#include <string_view>

#include "support/file_helpers.hpp"

namespace diapause::test_support {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class VolatileDiskTest : public testing::Test {
 protected:
  int create(const char* path, std::string_view text) {
    const int fd = disk_.openat(AT_FDCWD, path, kNewFile, 0600);
    EXPECT_EQ(disk_.pwrite(fd, bytes(text), 0), static_cast<std::int64_t>(text.size()));
    return fd;
  }
  void sync_directory(const char* path) {
    const int fd = disk_.openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    EXPECT_EQ(disk_.fsync(fd), 0);
    disk_.close(fd);
  }
  void create_durably(const char* path, std::string_view text) {
    const int fd = create(path, text);
    EXPECT_EQ(disk_.fsync(fd), 0);
    disk_.close(fd);
    sync_directory("/");
  }
  void rename(const char* from, const char* to) {
    EXPECT_EQ(disk_.renameat(AT_FDCWD, from, AT_FDCWD, to), 0);
  }

  VolatileDisk disk_;
};

TEST_F(VolatileDiskTest, KeepsWhatWasSyncedWithItsDirectory) {
  create_durably("/a", "text");
  disk_.power_loss(PowerLoss::lose_all);
  EXPECT_EQ(content(disk_, "/a"), "text");
}

TEST_F(VolatileDiskTest, LosesASyncedFileWhoseNameWasNotSynced) {
  EXPECT_EQ(disk_.fsync(create("/a", "text")), 0);
  disk_.power_loss(PowerLoss::lose_all);
  EXPECT_THAT(disk_.paths(), IsEmpty());
}

TEST_F(VolatileDiskTest, LosesTheContentOfAnUnsyncedFileWhoseNameWasSynced) {
  create("/a", "text");
  sync_directory("/");
  disk_.power_loss(PowerLoss::lose_all);
  EXPECT_EQ(content(disk_, "/a"), "");
}

TEST_F(VolatileDiskTest, GoesBackToTheLastSyncedContent) {
  create_durably("/a", "first");
  create("/a", "second, longer");
  disk_.power_loss(PowerLoss::lose_all);
  EXPECT_EQ(content(disk_, "/a"), "first");
}

TEST_F(VolatileDiskTest, ForgetsAnUnsyncedRename) {
  create_durably("/a", "old");
  create_durably("/a.tmp", "new");
  rename("/a.tmp", "/a");
  disk_.power_loss(PowerLoss::lose_all);
  EXPECT_EQ(content(disk_, "/a"), "old");
  EXPECT_EQ(content(disk_, "/a.tmp"), "new");
}

TEST_F(VolatileDiskTest, BringsBackWhatWasRemovedWithoutSync) {
  EXPECT_EQ(disk_.mkdirat(AT_FDCWD, "/d", 0700), 0);
  create_durably("/a", "text");
  EXPECT_EQ(disk_.unlinkat(AT_FDCWD, "/a", 0), 0);
  EXPECT_EQ(disk_.unlinkat(AT_FDCWD, "/d", AT_REMOVEDIR), 0);
  disk_.power_loss(PowerLoss::lose_all);
  EXPECT_THAT(disk_.paths(), ElementsAre("/a", "/d/"));
  EXPECT_GE(disk_.openat(AT_FDCWD, "/d/b", kNewFile, 0600), 0);
}

TEST_F(VolatileDiskTest, LosesTheTreeUnderADirectoryWhoseNameWasNotSynced) {
  EXPECT_EQ(disk_.mkdirat(AT_FDCWD, "/d", 0700), 0);
  EXPECT_EQ(disk_.fsync(create("/d/a", "text")), 0);
  sync_directory("/d");
  disk_.power_loss(PowerLoss::lose_all);
  EXPECT_THAT(disk_.paths(), IsEmpty());
}

TEST_F(VolatileDiskTest, CanKeepNamesAndLoseData) {
  create_durably("/a", "old");
  EXPECT_EQ(disk_.fsync(create("/synced.tmp", "new")), 0);
  create("/unsynced", "new");
  rename("/synced.tmp", "/a");
  disk_.power_loss(PowerLoss::keep_names_lose_data);
  EXPECT_THAT(disk_.paths(), ElementsAre("/a", "/unsynced"));
  EXPECT_EQ(content(disk_, "/a"), "new");
  EXPECT_EQ(content(disk_, "/unsynced"), "");
}

TEST_F(VolatileDiskTest, CanKeepDataAndLoseNames) {
  create_durably("/a", "old");
  create("/a", "overwritten in place");
  create("/b", "new");
  disk_.power_loss(PowerLoss::keep_data_lose_names);
  EXPECT_THAT(disk_.paths(), ElementsAre("/a"));
  EXPECT_EQ(content(disk_, "/a"), "overwritten in place");
}

TEST_F(VolatileDiskTest, KeepsAPrefixOfTheChangesOfADirectoryAtRandom) {
  std::set<std::vector<std::string>> outcomes;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    VolatileDisk disk;
    for (const char* name : {"/a", "/b", "/c"}) disk.openat(AT_FDCWD, name, kNewFile, 0600);
    disk.power_loss(PowerLoss::random, seed);
    outcomes.insert(disk.paths());
  }
  EXPECT_THAT(outcomes, testing::UnorderedElementsAre(std::vector<std::string>{},
                                                      std::vector<std::string>{"/a"},
                                                      std::vector<std::string>{"/a", "/b"},
                                                      std::vector<std::string>{"/a", "/b", "/c"}));
}

TEST_F(VolatileDiskTest, TearsUnsyncedContentByPagesAtRandom) {
  bool torn = false;
  for (std::uint64_t seed = 0; seed < 40 && !torn; ++seed) {
    create_durably("/a", std::string(8192, 'o'));
    const int fd = disk_.openat(AT_FDCWD, "/a", O_RDWR, 0);
    EXPECT_EQ(disk_.pwrite(fd, bytes(std::string(8192, 'n')), 0), 8192);
    disk_.power_loss(PowerLoss::random, seed);
    const std::string left = content(disk_, "/a");
    ASSERT_EQ(left.size(), 8192U);
    torn = left[0] != left[4096];
  }
  EXPECT_TRUE(torn);
}

TEST_F(VolatileDiskTest, IsTheSameForTheSameSeed) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    std::vector<std::string> left[2];
    for (auto& paths : left) {
      VolatileDisk disk;
      for (const char* name : {"/a", "/b", "/c"}) disk.openat(AT_FDCWD, name, kNewFile, 0600);
      disk.power_loss(PowerLoss::random, seed);
      paths = disk.paths();
    }
    EXPECT_EQ(left[0], left[1]);
  }
}

TEST_F(VolatileDiskTest, NeverLosesSyncedThingsWhateverTheMode) {
  for (const PowerLoss mode : {PowerLoss::lose_all, PowerLoss::keep_names_lose_data,
                               PowerLoss::keep_data_lose_names, PowerLoss::random}) {
    create_durably("/a", "text");
    disk_.power_loss(mode, 7);
    EXPECT_EQ(content(disk_, "/a"), "text");
  }
}

TEST_F(VolatileDiskTest, CountsWritesThroughAMappingAsUnsynced) {
  create_durably("/a", std::string(4096, 'o'));
  const int fd = disk_.openat(AT_FDCWD, "/a", O_RDWR, 0);
  int error = 0;
  std::byte* base = disk_.map_shared(fd, 4096, &error);
  ASSERT_NE(base, nullptr);
  base[0] = std::byte{'1'};
  EXPECT_EQ(disk_.fsync(fd), 0);
  base[1] = std::byte{'2'};
  disk_.power_loss(PowerLoss::lose_all);
  EXPECT_EQ(content(disk_, "/a").substr(0, 3), "1oo");
  base[2] = std::byte{'3'};
  EXPECT_EQ(content(disk_, "/a").substr(0, 3), "1oo") << "the writer died with the power";
  EXPECT_EQ(disk_.unmap(base, 4096), 0);
  EXPECT_EQ(disk_.unmap(base, 4096), -EINVAL);
}

TEST_F(VolatileDiskTest, KnowsNoDescriptorFromBeforeThePowerLoss) {
  create_durably("/a", "text");
  const int old = disk_.openat(AT_FDCWD, "/a", O_RDWR, 0);
  EXPECT_EQ(disk_.try_lock(old), 0);
  disk_.power_loss(PowerLoss::lose_all);
  const int fresh = disk_.openat(AT_FDCWD, "/a", O_RDWR, 0);
  EXPECT_NE(fresh, old);
  EXPECT_EQ(disk_.fsync(old), -EBADF);
  EXPECT_EQ(disk_.pwrite(old, bytes("x"), 0), -EBADF);
  EXPECT_EQ(disk_.try_lock(fresh), 0) << "locks die with their processes";
}

TEST_F(VolatileDiskTest, WritesWhatFitsAndIsFullThen) {
  disk_.set_capacity(3 * kPageBytes);
  const int fd = create("/a", std::string(kPageBytes, 'a'));
  EXPECT_EQ(disk_.pwrite(fd, bytes(std::string(4 * kPageBytes, 'b')), kPageBytes), 2 * 4096);
  EXPECT_EQ(disk_.pwrite(fd, bytes("c"), 3 * kPageBytes), -ENOSPC);
  EXPECT_EQ(disk_.pwrite(fd, bytes("over"), 0), 4) << "overwriting needs no space";
  const int other = disk_.openat(AT_FDCWD, "/b", kNewFile, 0600);
  EXPECT_EQ(disk_.fallocate(other, 0, 1), -ENOSPC);
}

TEST_F(VolatileDiskTest, GivesSpaceBackWithTheLastUseOfAFile) {
  disk_.set_capacity(4 * kPageBytes);
  const int fd = create("/a", std::string(3 * kPageBytes, 'a'));
  sys::FileSystemSpace space{};
  EXPECT_EQ(disk_.fstatvfs(fd, &space), 0);
  EXPECT_EQ(space.free_bytes, kPageBytes);
  EXPECT_EQ(space.total_bytes, 4 * kPageBytes);
  disk_.unlinkat(AT_FDCWD, "/a", 0);
  EXPECT_EQ(disk_.fstatvfs(fd, &space), 0);
  EXPECT_EQ(space.free_bytes, kPageBytes) << "still open";
  disk_.close(fd);
  EXPECT_EQ(disk_.fallocate(disk_.openat(AT_FDCWD, "/b", kNewFile, 0600), 0, 4 * kPageBytes), 0);
}

TEST_F(VolatileDiskTest, KeepsTheZerosOfAFileThatWasReservedAndNeverWritten) {
  const int fd = create("/a", "");
  EXPECT_EQ(disk_.fallocate(fd, 0, 5), 0);
  EXPECT_EQ(disk_.fsync(fd), 0);
  sync_directory("/");
  disk_.power_loss(PowerLoss::lose_all);
  EXPECT_EQ(content(disk_, "/a"), std::string(5, '\0'));
}

TEST_F(VolatileDiskTest, CanRefuseDirectAccess) {
  disk_.refuse_direct();
  EXPECT_EQ(disk_.openat(AT_FDCWD, "/a", kNewFile | O_DIRECT, 0600), -EINVAL);
}

TEST_F(VolatileDiskTest, CanRefuseDirectTransfersUntilTheyAreNoneAnyMore) {
  disk_.refuse_direct_transfers();
  const int fd = disk_.openat(AT_FDCWD, "/a", kNewFile | O_DIRECT, 0600);
  alignas(kPageBytes) std::byte block[kPageBytes] = {};
  EXPECT_EQ(disk_.pwrite(fd, block, 0), -EINVAL);
  EXPECT_EQ(disk_.pread(fd, block, 0), -EINVAL);
  EXPECT_EQ(disk_.stop_direct(fd), 0);
  EXPECT_EQ(disk_.pwrite(fd, block, 0), 4096);
}

TEST_F(VolatileDiskTest, WantsDirectTransfersAligned) {
  const int fd = disk_.openat(AT_FDCWD, "/a", kNewFile | O_DIRECT, 0600);
  alignas(kPageBytes) std::byte block[2 * kPageBytes] = {};
  EXPECT_EQ(disk_.pwrite(fd, ByteView(block, kPageBytes), kPageBytes), 4096);
  EXPECT_EQ(disk_.pwrite(fd, ByteView(block, 100), 0), -EINVAL);
  EXPECT_EQ(disk_.pwrite(fd, ByteView(block, kPageBytes), 100), -EINVAL);
  EXPECT_EQ(disk_.pread(fd, MutableBytes(block + 1, kPageBytes), 0), -EINVAL);
}

TEST_F(VolatileDiskTest, KeepsDamageDoneFromOutside) {
  create_durably("/a", "text");
  create("/unsynced", "text");
  EXPECT_TRUE(disk_.write_content("/a", bytes("tex!")));
  EXPECT_FALSE(disk_.write_content("/b", bytes("text")));
  disk_.power_loss(PowerLoss::lose_all);
  EXPECT_EQ(content(disk_, "/a"), "tex!");
}

TEST_F(VolatileDiskTest, LosesANodeForGood) {
  EXPECT_EQ(disk_.mkdirat(AT_FDCWD, "/node1", 0700), 0);
  EXPECT_EQ(disk_.fsync(create("/node1/a", "text")), 0);
  sync_directory("/node1");
  create_durably("/a", "text");
  EXPECT_TRUE(disk_.erase("/node1"));
  EXPECT_FALSE(disk_.erase("/node1"));
  EXPECT_FALSE(disk_.erase("/"));
  disk_.power_loss(PowerLoss::keep_names_lose_data);
  EXPECT_THAT(disk_.paths(), ElementsAre("/a"));
}

TEST_F(VolatileDiskTest, ListsAllPathsHoweverManyThereAre) {
  const std::string directory =
      "/a directory with a name too long to be kept inside of a string object";
  EXPECT_EQ(disk_.mkdirat(AT_FDCWD, directory.c_str(), 0700), 0);
  for (char name = 'a'; name <= 'z'; ++name)
    disk_.openat(AT_FDCWD, (directory + "/" + name).c_str(), kNewFile, 0600);
  const std::vector<std::string> paths = disk_.paths();
  ASSERT_EQ(paths.size(), 27U);
  EXPECT_EQ(paths.back(), directory + "/z");
}

TEST_F(VolatileDiskTest, CanGiveAFileToSomebodyElse) {
  const int fd = create("/a", "text");
  EXPECT_TRUE(disk_.set_owner("/a", 4711));
  EXPECT_FALSE(disk_.set_owner("/b", 4711));
  struct stat status {};
  EXPECT_EQ(disk_.fstat(fd, &status), 0);
  EXPECT_EQ(status.st_uid, 4711U);
}

}  // namespace
}  // namespace diapause::test_support
