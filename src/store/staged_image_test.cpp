#include "store/staged_image.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "format/checksum.hpp"

namespace diapause::store {
namespace {

using testing::HasSubstr;

// One file, in memory, on a disk that takes time when it is asked (as fresh memory makes it) or when it is waited for.
struct Disk {
  ByteVector bytes;
  bool is_slow = false;
  double now_s = 0;
  std::uint64_t bytes_read = 0;
  int error = 0;  // of the next read
};

class DiskQueue : public sys::ReadQueue {
 public:
  explicit DiskQueue(Disk& disk) : disk_(disk) {}
  std::int64_t submit(int, MutableBytes data, std::uint64_t offset) override {
    int result = std::exchange(disk_.error, 0);
    const std::uint64_t inside = offset < disk_.bytes.size() ? disk_.bytes.size() - offset : 0;
    if (result == 0 && inside < data.size()) result = -ENODATA;
    if (result == 0) std::memcpy(data.data(), disk_.bytes.data() + offset, data.size());
    disk_.bytes_read += data.size();
    disk_.now_s += disk_.is_slow ? 1 : 100;
    results_.push_back(result);
    return static_cast<std::int64_t>(results_.size()) - 1;
  }
  int wait(std::int64_t ticket) override {
    disk_.now_s += disk_.is_slow ? 100 : 1;
    return results_[static_cast<std::size_t>(ticket)];
  }

 private:
  Disk& disk_;
  std::vector<int> results_;
};

class DiskKernel : public sys::Kernel {
 public:
  explicit DiskKernel(Disk& disk) : disk_(disk) {}
  std::unique_ptr<sys::ReadQueue> read_queue(unsigned) override { return std::make_unique<DiskQueue>(disk_); }
  int close(int) override { return 0; }

  int openat(int, const char*, int, mode_t) override { return -ENOSYS; }
  std::int64_t pread(int, MutableBytes, std::uint64_t) override { return -ENOSYS; }
  std::int64_t pwrite(int, ByteView, std::uint64_t) override { return -ENOSYS; }
  int fsync(int) override { return -ENOSYS; }
  int fallocate(int, std::uint64_t, std::uint64_t) override { return -ENOSYS; }
  int ftruncate(int, std::uint64_t) override { return -ENOSYS; }
  int fstat(int, struct stat*) override { return -ENOSYS; }
  int fstatvfs(int, sys::FileSystemSpace*) override { return -ENOSYS; }
  int renameat(int, const char*, int, const char*) override { return -ENOSYS; }
  int unlinkat(int, const char*, int) override { return -ENOSYS; }
  int mkdirat(int, const char*, mode_t) override { return -ENOSYS; }
  int list(int, std::vector<sys::DirectoryEntry>*) override { return -ENOSYS; }
  int try_lock(int) override { return -ENOSYS; }
  int unlock(int) override { return -ENOSYS; }
  std::byte* map_shared(int, std::uint64_t, int*) override { return nullptr; }
  int unmap(std::byte*, std::uint64_t) override { return -ENOSYS; }

 private:
  Disk& disk_;
};

class StagedImageTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const std::uint64_t count : {std::uint64_t{17}, std::uint64_t{0}, 20 * kMiB + 3, kMiB, std::uint64_t{1}}) {
      format::Region region;
      region.name = "r" + std::to_string(index_.regions.size());
      region.count = count;
      index_.regions.push_back(region);
    }
    disk_.bytes.resize(*format::lay_out(index_));
    for (std::size_t i = 0; i < disk_.bytes.size(); ++i) disk_.bytes[i] = static_cast<std::byte>(i * 31 / 7);
    for (format::Region& region : index_.regions) {
      for (std::size_t b = 0; b < region.block_checksums.size(); ++b) {
        region.block_checksums[b] = format::checksum64(
            stored(region).subspan(b * kMiB, std::min<std::uint64_t>(kMiB, region.stored_bytes - b * kMiB)));
      }
      delivered_.emplace_back(region.stored_bytes);
    }
  }

  MutableBytes stored(const format::Region& region) {
    return MutableBytes(disk_.bytes).subspan(region.offset, region.stored_bytes);
  }
  Status deliver_all() {
    std::vector<std::byte*> targets;
    for (ByteVector& target : delivered_) targets.push_back(target.data());
    return image_.deliver(index_, targets);
  }
  bool is_delivered(std::size_t region) {
    const ByteVector& found = delivered_[region];
    return found.empty() || std::memcmp(found.data(), stored(index_.regions[region]).data(), found.size()) == 0;
  }
  bool all_delivered() {
    bool all = true;
    for (std::size_t r = 0; r < delivered_.size(); ++r) all = all && is_delivered(r);
    return all;
  }

  static constexpr Spare kPlenty{std::uint64_t{1} << 40, 1};
  Disk disk_;
  DiskKernel kernel_{disk_};
  format::ImageIndex index_;
  std::vector<ByteVector> delivered_;
  StagedImage image_{sys::File(kernel_, 3, "/disk/r0.img"), 0, "the image", [this] { return disk_.now_s; }};
};

TEST_F(StagedImageTest, ReadsNearlyEverythingTwiceWhereMemoryIsTheSlowerOne) {
  ASSERT_TRUE(image_.verify(index_, kPlenty));
  EXPECT_LE(image_.kept_bytes(), 2 * kMiB);  // the first piece tells
  const std::uint64_t once = disk_.bytes_read;
  ASSERT_TRUE(deliver_all());
  EXPECT_TRUE(all_delivered());
  EXPECT_EQ(disk_.bytes_read, 2 * once - image_.kept_bytes());
}

TEST_F(StagedImageTest, ReadsLittleAgainWhereTheDiskIsTheSlowerOne) {
  disk_.is_slow = true;
  ASSERT_TRUE(image_.verify(index_, kPlenty));
  const std::uint64_t once = disk_.bytes_read;
  ASSERT_TRUE(deliver_all());
  EXPECT_TRUE(all_delivered());
  EXPECT_EQ(disk_.bytes_read, 2 * once - image_.kept_bytes());
  EXPECT_GE(image_.kept_bytes(), once / 4);  // but for the reads begun before the first wait
}

TEST_F(StagedImageTest, IsHandedOverWholeBySeveralThreads) {
  disk_.is_slow = true;
  for (const std::uint64_t memory_bytes : {std::uint64_t{0}, 5 * kMiB, kPlenty.memory_bytes}) {
    ASSERT_TRUE(image_.verify(index_, {memory_bytes, 3}));
    for (ByteVector& target : delivered_) target.assign(target.size(), std::byte{0});
    ASSERT_TRUE(deliver_all());
    EXPECT_TRUE(all_delivered());
  }
}

TEST_F(StagedImageTest, SaysThatSomethingWasDamagedInMemoryWhicheverThreadMeetsIt) {
  disk_.is_slow = true;
  ASSERT_TRUE(image_.verify(index_, {kPlenty.memory_bytes, 3}));
  for (format::Region& region : index_.regions) {
    for (std::uint64_t& checksum : region.block_checksums) checksum ^= 1;  // as if all of the memory had changed
  }
  const Status delivered = deliver_all();
  ASSERT_FALSE(delivered);
  EXPECT_THAT(delivered.error().message, HasSubstr("is damaged"));
}

TEST_F(StagedImageTest, KeepsNoMoreThanItMay) {
  disk_.is_slow = true;
  ASSERT_TRUE(image_.verify(index_, {5 * kMiB, 1}));
  EXPECT_LE(image_.kept_bytes(), 5 * kMiB);
  EXPECT_GT(image_.kept_bytes(), 0U);
  ASSERT_TRUE(deliver_all());
  EXPECT_TRUE(all_delivered());
}

TEST_F(StagedImageTest, NamesTheBlockThatIsDamaged) {
  stored(index_.regions[2])[4 * kMiB] ^= std::byte{1};
  const Status verified = image_.verify(index_, {});
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().code, Code::corrupt);
  EXPECT_THAT(verified.error().message, HasSubstr("the image: block 4 of region 'r2'"));
}

TEST_F(StagedImageTest, FindsADamagedByteWhereverItLies) {
  for (const std::size_t region : {0U, 2U, 3U, 4U}) {
    std::byte& last = stored(index_.regions[region]).back();
    last ^= std::byte{0x80};
    EXPECT_FALSE(image_.verify(index_, {})) << region;
    last ^= std::byte{0x80};
    EXPECT_TRUE(image_.verify(index_, {})) << region;
  }
}

TEST_F(StagedImageTest, HandsOverNoBlockThatWasDamagedBetweenThePasses) {
  ASSERT_TRUE(image_.verify(index_, {}));
  stored(index_.regions[3])[0] ^= std::byte{1};
  const Status delivered = deliver_all();
  ASSERT_FALSE(delivered);
  EXPECT_EQ(delivered.error().code, Code::corrupt);
  EXPECT_EQ(delivered_[3], ByteVector(kMiB));
}

TEST_F(StagedImageTest, HandsOverWhatWasCheckedAndKeptWhateverBecomesOfTheFile) {
  disk_.is_slow = true;
  ASSERT_TRUE(image_.verify(index_, kPlenty));
  const ByteVector before(stored(index_.regions[2]).begin(), stored(index_.regions[2]).begin() + kMiB);
  stored(index_.regions[2])[0] ^= std::byte{1};
  ASSERT_TRUE(deliver_all());
  EXPECT_TRUE(std::equal(before.begin(), before.end(), delivered_[2].begin()));
}

TEST_F(StagedImageTest, ReadsOnlyWhatTheRegionsAskedForNeed) {
  ASSERT_TRUE(image_.verify(index_, {}));
  disk_.bytes_read = 0;
  std::vector<std::byte*> targets(index_.regions.size());
  targets[3] = delivered_[3].data();
  ASSERT_TRUE(image_.deliver(index_, targets));
  EXPECT_TRUE(is_delivered(3));
  EXPECT_LE(disk_.bytes_read, 4 * kMiB);
  EXPECT_EQ(delivered_[2], ByteVector(20 * kMiB + 3));
}

TEST_F(StagedImageTest, SaysThatTheFileEndsEarly) {
  disk_.bytes.resize(disk_.bytes.size() - 3 * kMiB);
  const Status verified = image_.verify(index_, {});
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().code, Code::corrupt);
  EXPECT_THAT(verified.error().message, HasSubstr("the image ends"));
}

TEST_F(StagedImageTest, NamesTheFileThatCannotBeReadAndCanBeAskedAgain) {
  disk_.error = -EIO;
  const Status verified = image_.verify(index_, {});
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().code, Code::io);
  EXPECT_THAT(verified.error().message, HasSubstr("/disk/r0.img"));
  EXPECT_TRUE(image_.verify(index_, {}));
}

}  // namespace
}  // namespace diapause::store
