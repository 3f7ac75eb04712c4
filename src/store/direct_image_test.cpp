#include "store/direct_image.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "format/checksum.hpp"
#include "support/same_bytes.hpp"

namespace diapause::store {
namespace {

using test_support::are_same;
using testing::HasSubstr;

// One file.
struct Disk {
  ByteVector bytes;
  std::atomic<std::uint64_t> bytes_read = 0;
  std::atomic<int> error = 0;  // errno of the next read
  MutableBytes place;          // memory of which it is counted how much is read to it
  std::atomic<std::uint64_t> bytes_to_place = 0;
};

class DiskQueue : public sys::ReadQueue {
 public:
  explicit DiskQueue(Disk& disk) : disk_(disk) {}
  std::int64_t submit(int, MutableBytes data, std::uint64_t offset) override {
    int result = disk_.error.exchange(0);
    const std::uint64_t inside = offset < disk_.bytes.size() ? disk_.bytes.size() - offset : 0;
    if (result == 0 && inside < data.size()) result = -ENODATA;
    if (result == 0) std::memcpy(data.data(), disk_.bytes.data() + offset, data.size());
    disk_.bytes_read += data.size();
    if (disk_.place.data() <= data.data() && data.data() < disk_.place.data() + disk_.place.size())
      disk_.bytes_to_place += data.size();
    results_.push_back(result);
    return static_cast<std::int64_t>(results_.size()) - 1;
  }
  int wait(std::int64_t ticket) override { return results_[static_cast<std::size_t>(ticket)]; }

 private:
  Disk& disk_;
  std::vector<int> results_;
};

class DiskKernel : public sys::Kernel {
 public:
  explicit DiskKernel(Disk& disk) : disk_(disk) {}
  std::unique_ptr<sys::ReadQueue> read_queue(unsigned) override {
    return std::make_unique<DiskQueue>(disk_);
  }
  int close(int) override { return 0; }

  int openat(int, const char*, int, mode_t) override { return -ENOSYS; }
  std::int64_t pread(int, MutableBytes data, std::uint64_t offset) override {
    std::memcpy(data.data(), disk_.bytes.data() + offset, data.size());
    return static_cast<std::int64_t>(data.size());
  }
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

class DirectImageTest : public testing::Test {
 protected:
  void SetUp() override { fill({17, 0, 20 * kMiB + 3, kMiB, 1}); }

  // Makes an image of regions of these sizes.
  void fill(const std::vector<std::uint64_t>& sizes) {
    index_ = {};
    delivered_.clear();
    for (const std::uint64_t count : sizes) {
      format::Region region;
      region.name = "r" + std::to_string(index_.regions.size());
      region.count = count;
      index_.regions.push_back(region);
    }
    disk_.bytes.resize(*format::lay_out(index_));
    for (std::size_t i = 0; i < disk_.bytes.size(); ++i)
      disk_.bytes[i] = static_cast<std::byte>(i * 31 / 7);
    for (format::Region& region : index_.regions) {
      for (std::size_t b = 0; b < region.block_checksums.size(); ++b) {
        region.block_checksums[b] = format::checksum64(stored(region).subspan(
            b * kMiB, std::min<std::uint64_t>(kMiB, region.stored_bytes - b * kMiB)));
      }
      delivered_.emplace_back(region.stored_bytes);
    }
  }

  MutableBytes stored(const format::Region& region) {
    return MutableBytes(disk_.bytes).subspan(region.offset, region.stored_bytes);
  }
  Status verify() { return image_.verify(index_, 1); }
  Status deliver_all(unsigned threads = 1) {
    std::vector<std::byte*> targets;
    for (ByteVector& target : delivered_) targets.push_back(target.data());
    return image_.deliver(index_, targets, threads);
  }
  bool is_delivered(std::size_t region) {
    const ByteVector& found = delivered_[region];
    return found.empty() || are_same(found, stored(index_.regions[region]));
  }
  bool all_delivered() {
    bool all = true;
    for (std::size_t r = 0; r < delivered_.size(); ++r) all = all && is_delivered(r);
    return all;
  }

  Disk disk_;
  DiskKernel kernel_{disk_};
  format::ImageIndex index_;
  std::vector<ByteVector> delivered_;
  DirectImage image_{sys::File(kernel_, 3, "/disk/r0.img"), 0, "the image"};
};

TEST_F(DirectImageTest, IsDeliveredWholeWithEveryByteReadOnce) {
  for (const unsigned threads : {1U, 3U}) {
    disk_.bytes_read = 0;
    for (ByteVector& target : delivered_) target.assign(target.size(), std::byte{0});
    ASSERT_TRUE(deliver_all(threads));
    EXPECT_TRUE(all_delivered());
    EXPECT_LE(disk_.bytes_read, disk_.bytes.size());
  }
}

TEST_F(DirectImageTest, IsDeliveredWholeWhereRegionsSharePages) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t i = 0; i < 30'000; ++i) sizes.push_back(i == 7000 ? 3 * kMiB + 5 : i % 211);
  fill(sizes);
  ASSERT_EQ(format::format_version_of(index_), 3U);
  for (const unsigned threads : {1U, 3U}) {
    for (ByteVector& target : delivered_) std::ranges::fill(target, std::byte{0});
    ASSERT_TRUE(deliver_all(threads));
    EXPECT_TRUE(all_delivered());
  }
  stored(index_.regions[20'002])[3] ^= std::byte{1};
  EXPECT_THAT(verify().error().message, HasSubstr("block 0 of region 'r20002'"));
}

TEST_F(DirectImageTest, SaysThatABlockIsDamagedWhicheverThreadMeetsIt) {
  for (const std::size_t block : {0U, 9U, 19U}) {
    index_.regions[2].block_checksums[block] ^= 1;
    const Status delivered = deliver_all(3);
    ASSERT_FALSE(delivered);
    EXPECT_EQ(delivered.error().code, Code::corrupt);
    EXPECT_THAT(delivered.error().message,
                HasSubstr("block " + std::to_string(block) + " of region 'r2'"));
    index_.regions[2].block_checksums[block] ^= 1;
  }
}

TEST_F(DirectImageTest, NamesTheBlockThatIsDamaged) {
  stored(index_.regions[2])[4 * kMiB] ^= std::byte{1};
  const Status verified = verify();
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().code, Code::corrupt);
  EXPECT_THAT(verified.error().message, HasSubstr("the image: block 4 of region 'r2'"));
}

TEST_F(DirectImageTest, FindsADamagedByteWhereverItLies) {
  for (const std::size_t region : {0U, 2U, 3U, 4U}) {
    std::byte& last = stored(index_.regions[region]).back();
    last ^= std::byte{0x80};
    EXPECT_FALSE(verify()) << region;
    last ^= std::byte{0x80};
    EXPECT_TRUE(verify()) << region;
  }
}

// Gives region 2, whose last block is not whole pages, memory that begins at a page.
class PlaceTest : public DirectImageTest {
 protected:
  static constexpr std::uint64_t kBytes = 20 * kMiB + 3;
  void SetUp() override {
    DirectImageTest::SetUp();
    auto memory = sys::AlignedBuffer::allocate(kBytes);
    ASSERT_TRUE(memory);
    memory_ = std::move(*memory);
    disk_.place = memory_.bytes();
  }
  Status deliver() {
    std::vector<std::byte*> targets(index_.regions.size());
    targets[2] = memory_.bytes().data();
    return image_.deliver(index_, targets, 2);
  }
  bool is_right() { return are_same(memory_.bytes().first(kBytes), stored(index_.regions[2])); }
  sys::AlignedBuffer memory_;
};

TEST_F(PlaceTest, IsReadStraightToItExceptForPartsOfPages) {
  ASSERT_TRUE(deliver());
  EXPECT_TRUE(is_right());
  EXPECT_EQ(disk_.bytes_to_place, 20 * kMiB);
}

TEST_F(PlaceTest, IsReadThroughABufferWhereTheKernelMustNotWriteToIt) {
  disk_.error = -EFAULT;
  ASSERT_TRUE(deliver());
  EXPECT_TRUE(is_right());
}

TEST_F(PlaceTest, IsCheckedThere) {
  stored(index_.regions[2])[4 * kMiB] ^= std::byte{1};
  EXPECT_THAT(deliver().error().message, HasSubstr("the image: block 4 of region 'r2'"));
}

TEST_F(DirectImageTest, ReadsOnlyWhatTheRegionsAskedForNeed) {
  std::vector<std::byte*> targets(index_.regions.size());
  targets[3] = delivered_[3].data();
  ASSERT_TRUE(image_.deliver(index_, targets, 1));
  EXPECT_TRUE(is_delivered(3));
  EXPECT_LE(disk_.bytes_read, 4 * kMiB);
  EXPECT_EQ(delivered_[2], ByteVector(20 * kMiB + 3));
}

TEST_F(DirectImageTest, SaysThatTheFileEndsEarly) {
  disk_.bytes.resize(disk_.bytes.size() - 3 * kMiB);
  const Status verified = verify();
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().code, Code::corrupt);
  EXPECT_THAT(verified.error().message, HasSubstr("the image ends"));
}

TEST_F(DirectImageTest, NamesTheFileThatCannotBeReadAndCanBeAskedAgain) {
  disk_.error = -EIO;
  const Status verified = verify();
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().code, Code::io);
  EXPECT_THAT(verified.error().message, HasSubstr("/disk/r0.img"));
  EXPECT_TRUE(verify());
}

}  // namespace
}  // namespace diapause::store
