#include "sys/large_pages.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "base/bytes.hpp"

namespace diapause::sys {
namespace {

// A file in memory, of so many bytes.
class LargePages : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = "/dev/shm/diapause-large-pages-XXXXXX";
    fd_ = ::mkstemp(path.data());
    if (fd_ < 0) GTEST_SKIP() << "no tmpfs at its usual place";
    ::unlink(path.c_str());
  }
  ~LargePages() override {
    if (mapped_ != nullptr) ::munmap(mapped_, bytes_);
    if (fd_ >= 0) ::close(fd_);
  }

  void make(std::uint64_t bytes) {
    bytes_ = bytes;
    ASSERT_EQ(::ftruncate(fd_, static_cast<off_t>(bytes)), 0);
  }
  void map() {
    int error = 0;
    mapped_ = map_for_large_pages(fd_, bytes_, &error);
    ASSERT_NE(mapped_, nullptr) << error;
  }
  std::uint64_t allocated() const {
    struct stat status {};
    EXPECT_EQ(::fstat(fd_, &status), 0);
    return static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  std::uint64_t size() const {
    struct stat status {};
    EXPECT_EQ(::fstat(fd_, &status), 0);
    return static_cast<std::uint64_t>(status.st_size);
  }
  // How much of the mapping are large pages.
  std::uint64_t large_bytes() const { return large_bytes_of("ShmemPmdMapped:"); }
  std::uint64_t large_bytes_of(std::string_view key) const {
    std::ifstream maps("/proc/self/smaps");
    const auto begin = reinterpret_cast<std::uintptr_t>(mapped_);
    std::string line;
    bool is_here = false;
    while (std::getline(maps, line)) {
      const std::size_t dash = line.find('-');
      if (dash != std::string::npos && dash < line.find(' '))
        is_here = std::stoull(line, nullptr, 16) == begin;
      if (is_here && line.starts_with(key)) return 1024 * std::stoull(line.substr(key.size()));
    }
    return 0;
  }
  bool kernel_has_them() {
    // One page is enough to see whether the kernel has any to give.
    return allocated() >= kLargePageBytes;
  }

  int fd_ = -1;
  std::uint64_t bytes_ = 0;
  std::byte* mapped_ = nullptr;
};

TEST_F(LargePages, BackAFileAndAreMappedAsSuch) {
  make(3 * kLargePageBytes + 5000);
  back_by_large_pages(fd_, 0, bytes_);
  if (!kernel_has_them()) GTEST_SKIP() << "this kernel has no large pages to give";
  EXPECT_EQ(size(), bytes_);
  EXPECT_EQ(allocated(), 3 * kLargePageBytes);
  map();
  EXPECT_EQ(large_bytes(), 3 * kLargePageBytes);
}

TEST_F(LargePages, BackWhatLiesInAPartOfAFile) {
  make(4 * kLargePageBytes);
  back_by_large_pages(fd_, kPageBytes, 3 * kLargePageBytes - kPageBytes);
  if (!kernel_has_them()) GTEST_SKIP() << "this kernel has no large pages to give";
  EXPECT_EQ(allocated(), kLargePageBytes);
}

TEST_F(LargePages, LeaveTheContentAsItIs) {
  make(2 * kLargePageBytes);
  const std::string text = "written before";
  ASSERT_EQ(::pwrite(fd_, text.data(), text.size(), 3 * kPageBytes), ssize_t(text.size()));
  back_by_large_pages(fd_, 0, bytes_);
  map();
  EXPECT_EQ(std::string(reinterpret_cast<char*>(mapped_) + 3 * kPageBytes, text.size()), text);
  for (std::uint64_t at = 0; at < bytes_; ++at) {
    const bool is_text = at >= 3 * kPageBytes && at < 3 * kPageBytes + text.size();
    if (!is_text) {
      ASSERT_EQ(mapped_[at], std::byte{0}) << at;
    }
  }
}

TEST_F(LargePages, AreMappedAsSuchWhereAPartOfTheFileIsReadOnly) {
  make(4 * kLargePageBytes);
  back_by_large_pages(fd_, 0, bytes_);
  if (!kernel_has_them()) GTEST_SKIP() << "this kernel has no large pages to give";
  int error = 0;
  bytes_ -= kPageBytes;
  mapped_ = map_private_for_large_pages(fd_, kPageBytes, bytes_, &error);
  ASSERT_NE(mapped_, nullptr) << error;
  for (std::uint64_t at = 0; at < bytes_; at += kPageBytes) ASSERT_EQ(mapped_[at], std::byte{0});
  EXPECT_EQ(large_bytes_of("FilePmdMapped:") + large_bytes_of("ShmemPmdMapped:"),
            3 * kLargePageBytes);
}

TEST_F(LargePages, AreMappedTogetherWithTheRestOfTheFile) {
  for (const std::uint64_t bytes : {kPageBytes, kLargePageBytes, 2 * kLargePageBytes + 100}) {
    make(bytes);
    back_by_large_pages(fd_, 0, bytes_);
    map();
    mapped_[0] = std::byte{1};
    mapped_[bytes - 1] = std::byte{2};
    char last = 0;
    EXPECT_EQ(::pread(fd_, &last, 1, static_cast<off_t>(bytes - 1)), 1);
    EXPECT_EQ(last, 2);
    EXPECT_EQ(::munmap(mapped_, bytes_), 0);
    mapped_ = nullptr;
  }
}

}  // namespace
}  // namespace diapause::sys
