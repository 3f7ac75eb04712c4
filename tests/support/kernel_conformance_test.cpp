// The same behaviour asked of the machine's kernel and of the volatile disk, so that what holds on
// the one is believable on the other.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "support/file_helpers.hpp"
#include "support/volatile_disk.hpp"
#include "sys/kernel.hpp"

namespace diapause::test_support {
namespace {

using sys::DirectoryEntry;
using testing::UnorderedElementsAre;

std::string text_of(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class KernelConformance : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "real") {
      std::string pattern =
          (std::filesystem::temp_directory_path() / "diapause-conformance-XXXXXX").string();
      ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
      root_path_ = pattern;
      kernel_ = &sys::real_kernel();
    } else {
      root_path_ = "/root";
      ASSERT_EQ(disk_.mkdirat(AT_FDCWD, root_path_.c_str(), 0700), 0);
      kernel_ = &disk_;
    }
    root_ = kernel_->openat(AT_FDCWD, root_path_.c_str(), O_RDONLY | O_DIRECTORY, 0);
    ASSERT_GE(root_, 0);
  }

  void TearDown() override {
    kernel_->close(root_);
    if (GetParam() == "real") std::filesystem::remove_all(root_path_);
  }

  int open(const char* path, int flags) { return kernel_->openat(root_, path, flags, 0600); }
  std::int64_t write(int fd, std::string_view text, std::uint64_t offset = 0) {
    return kernel_->pwrite(fd, as_byte_view(text), offset);
  }
  std::string read(int fd, std::size_t bytes, std::uint64_t offset = 0) {
    std::string text(bytes, '?');
    const std::int64_t count = kernel_->pread(fd, std::as_writable_bytes(std::span(text)), offset);
    return count < 0 ? "error " + std::to_string(count)
                     : text.substr(0, static_cast<std::size_t>(count));
  }
  int make_file(const char* path, std::string_view text) {
    const int fd = open(path, kNewFile);
    if (fd >= 0) write(fd, text);
    return fd;
  }
  std::string content(const char* path) {
    const int fd = open(path, O_RDONLY);
    if (fd < 0) return "error " + std::to_string(fd);
    std::string text = read(fd, 1 << 16);
    kernel_->close(fd);
    return text;
  }
  std::uint64_t size(int fd) {
    struct stat status {};
    EXPECT_EQ(kernel_->fstat(fd, &status), 0);
    return static_cast<std::uint64_t>(status.st_size);
  }
  std::vector<std::string> names(int directory) {
    std::vector<DirectoryEntry> entries;
    EXPECT_EQ(kernel_->list(directory, &entries), 0);
    std::vector<std::string> result;
    for (const DirectoryEntry& entry : entries)
      result.push_back(entry.name + (entry.is_directory ? "/" : ""));
    return result;
  }
  int rename(const char* from, const char* to) { return kernel_->renameat(root_, from, root_, to); }
  int make_directory(const char* path) { return kernel_->mkdirat(root_, path, 0700); }

  VolatileDisk disk_;
  sys::Kernel* kernel_ = nullptr;
  std::string root_path_;
  int root_ = -1;
};

INSTANTIATE_TEST_SUITE_P(Kernels, KernelConformance, testing::Values("real", "volatile"),
                         [](const auto& instance) { return instance.param; });

TEST_P(KernelConformance, AppendsAtTheEndWhateverTheOffset) {
  make_file("a", "one");
  const int first = open("a", O_RDWR | O_APPEND);
  const int second = open("a", O_RDWR | O_APPEND);
  EXPECT_EQ(write(first, "two", 0), 3);
  EXPECT_EQ(write(second, "three", 3), 5);
  EXPECT_EQ(content("a"), "onetwothree");
}

TEST_P(KernelConformance, ReadsBackWhatWasWritten) {
  const int fd = open("a", kNewFile);
  EXPECT_EQ(write(fd, "diapause"), 8);
  EXPECT_EQ(read(fd, 8), "diapause");
  EXPECT_EQ(kernel_->close(fd), 0);
  EXPECT_EQ(content("a"), "diapause");
}

TEST_P(KernelConformance, ReadsShortAtTheEndAndNothingBehindIt) {
  const int fd = make_file("a", "12345");
  EXPECT_EQ(read(fd, 10, 3), "45");
  EXPECT_EQ(read(fd, 10, 5), "");
  EXPECT_EQ(read(fd, 10, 5000), "");
  kernel_->close(fd);
}

TEST_P(KernelConformance, FillsTheGapBeforeALaterWriteWithZeros) {
  const int fd = make_file("a", "ab");
  EXPECT_EQ(write(fd, "c", 5000), 1);
  EXPECT_EQ(size(fd), 5001U);
  EXPECT_EQ(read(fd, 3, 4998), std::string("\0\0c", 3));
  kernel_->close(fd);
}

TEST_P(KernelConformance, SaysThatAFileIsMissing) {
  EXPECT_EQ(open("a", O_RDONLY), -ENOENT);
  EXPECT_EQ(open("no/a", kNewFile), -ENOENT);
  EXPECT_EQ(kernel_->unlinkat(root_, "a", 0), -ENOENT);
  EXPECT_EQ(rename("a", "b"), -ENOENT);
  EXPECT_EQ(kernel_->mkdirat(root_, "no/a", 0700), -ENOENT);
}

TEST_P(KernelConformance, TruncatesOnlyIfAsked) {
  kernel_->close(make_file("a", "long text"));
  const int fd = open("a", O_RDWR | O_CREAT);
  EXPECT_EQ(size(fd), 9U);
  kernel_->close(fd);
  kernel_->close(open("a", kNewFile));
  EXPECT_EQ(content("a"), "");
}

TEST_P(KernelConformance, CreatesNothingThatExistsIfAskedExclusively) {
  kernel_->close(make_file("a", "text"));
  EXPECT_EQ(open("a", kNewFile | O_EXCL), -EEXIST);
  EXPECT_EQ(content("a"), "text");
  EXPECT_EQ(make_directory("a"), -EEXIST);
}

TEST_P(KernelConformance, KeepsToTheAccessADescriptorWasOpenedFor) {
  kernel_->close(make_file("a", "text"));
  const int reader = open("a", O_RDONLY);
  EXPECT_EQ(write(reader, "x"), -EBADF);
  EXPECT_EQ(kernel_->ftruncate(reader, 0), -EINVAL);
  EXPECT_EQ(kernel_->fallocate(reader, 0, 4096), -EBADF);
  const int writer = open("a", O_WRONLY);
  EXPECT_EQ(read(writer, 4), "error " + std::to_string(-EBADF));
  kernel_->close(reader);
  kernel_->close(writer);
}

TEST_P(KernelConformance, KnowsClosedDescriptorsAsBad) {
  const int fd = make_file("a", "text");
  kernel_->close(fd);
  struct stat status {};
  EXPECT_EQ(kernel_->close(fd), -EBADF);
  EXPECT_EQ(kernel_->fsync(fd), -EBADF);
  EXPECT_EQ(kernel_->fstat(fd, &status), -EBADF);
  EXPECT_EQ(write(fd, "x"), -EBADF);
  EXPECT_EQ(kernel_->try_lock(fd), -EBADF);
  EXPECT_EQ(kernel_->openat(fd, "b", kNewFile, 0600), -EBADF);
}

TEST_P(KernelConformance, TellsFilesFromDirectories) {
  kernel_->close(make_file("a", "text"));
  make_directory("d");
  EXPECT_EQ(open("a", O_RDONLY | O_DIRECTORY), -ENOTDIR);
  EXPECT_EQ(open("a/b", kNewFile), -ENOTDIR);
  EXPECT_EQ(open("d", O_RDWR), -EISDIR);
  EXPECT_EQ(open("d", O_RDWR | O_CREAT), -EISDIR);
  EXPECT_EQ(kernel_->unlinkat(root_, "d", 0), -EISDIR);
  EXPECT_EQ(kernel_->unlinkat(root_, "a", AT_REMOVEDIR), -ENOTDIR);
  const int directory = open("d", O_RDONLY);
  EXPECT_EQ(read(directory, 4), "error " + std::to_string(-EISDIR));
  kernel_->close(directory);
}

TEST_P(KernelConformance, SaysWhoOwnsAFileAndWhoMayUseIt) {
  const int fd = make_file("a", "text");
  struct stat status {};
  ASSERT_EQ(kernel_->fstat(fd, &status), 0);
  EXPECT_TRUE(S_ISREG(status.st_mode));
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  EXPECT_EQ(status.st_uid, ::geteuid());
  ASSERT_EQ(kernel_->fstat(root_, &status), 0);
  EXPECT_TRUE(S_ISDIR(status.st_mode));
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  kernel_->close(fd);
}

TEST_P(KernelConformance, TellsWhichFileANameIsOf) {
  const int fd = make_file("a", "text");
  kernel_->close(make_file("b", "text"));
  struct stat opened {};
  struct stat named {};
  ASSERT_EQ(kernel_->fstat(fd, &opened), 0);
  ASSERT_EQ(kernel_->fstatat(root_, "a", &named), 0);
  EXPECT_EQ(std::pair(named.st_dev, named.st_ino), std::pair(opened.st_dev, opened.st_ino));
  ASSERT_EQ(kernel_->Kernel::fstatat(root_, "a", &named), 0) << "by opening it";
  EXPECT_EQ(named.st_ino, opened.st_ino);
  ASSERT_EQ(kernel_->renameat(root_, "b", root_, "a"), 0);
  ASSERT_EQ(kernel_->fstatat(root_, "a", &named), 0);
  EXPECT_NE(named.st_ino, opened.st_ino);
  EXPECT_EQ(kernel_->fstatat(root_, "b", &named), -ENOENT);
  EXPECT_EQ(kernel_->Kernel::fstatat(root_, "b", &named), -ENOENT);
  kernel_->close(fd);
}

TEST_P(KernelConformance, CutsAndExtendsWithZeros) {
  const int fd = make_file("a", "12345678");
  EXPECT_EQ(kernel_->ftruncate(fd, 4), 0);
  EXPECT_EQ(kernel_->ftruncate(fd, 6), 0);
  EXPECT_EQ(read(fd, 10), std::string("1234\0\0", 6));
  kernel_->close(fd);
}

TEST_P(KernelConformance, ReservingExtendsAndNeverCuts) {
  const int fd = make_file("a", "1234");
  EXPECT_EQ(kernel_->fallocate(fd, 0, 8192), 0);
  EXPECT_EQ(size(fd), 8192U);
  EXPECT_EQ(kernel_->fallocate(fd, 0, 4096), 0);
  EXPECT_EQ(size(fd), 8192U);
  EXPECT_EQ(read(fd, 5), std::string("1234\0", 5));
  EXPECT_EQ(kernel_->fallocate(fd, 0, 0), -EINVAL);
  kernel_->close(fd);
}

TEST_P(KernelConformance, ListsWhatADirectoryHolds) {
  EXPECT_THAT(names(root_), UnorderedElementsAre());
  kernel_->close(make_file("a", "text"));
  make_directory("d");
  kernel_->close(make_file("d/inside", "text"));
  EXPECT_THAT(names(root_), UnorderedElementsAre("a", "d/"));
  EXPECT_THAT(names(root_), UnorderedElementsAre("a", "d/")) << "a second time, from the beginning";
}

TEST_P(KernelConformance, RemovesOnlyEmptyDirectories) {
  make_directory("d");
  kernel_->close(make_file("d/a", "text"));
  EXPECT_EQ(kernel_->unlinkat(root_, "d", AT_REMOVEDIR), -ENOTEMPTY);
  EXPECT_EQ(kernel_->unlinkat(root_, "d/a", 0), 0);
  EXPECT_EQ(kernel_->unlinkat(root_, "d", AT_REMOVEDIR), 0);
  EXPECT_THAT(names(root_), UnorderedElementsAre());
}

TEST_P(KernelConformance, KeepsARemovedFileForWhoHasItOpen) {
  const int fd = make_file("a", "text");
  EXPECT_EQ(kernel_->unlinkat(root_, "a", 0), 0);
  EXPECT_EQ(read(fd, 4), "text");
  EXPECT_EQ(open("a", O_RDONLY), -ENOENT);
  kernel_->close(fd);
}

TEST_P(KernelConformance, PutsNothingIntoARemovedDirectory) {
  make_directory("d");
  const int directory = open("d", O_RDONLY | O_DIRECTORY);
  EXPECT_EQ(kernel_->unlinkat(root_, "d", AT_REMOVEDIR), 0);
  EXPECT_EQ(kernel_->openat(directory, "a", kNewFile, 0600), -ENOENT);
  EXPECT_EQ(kernel_->mkdirat(directory, "a", 0700), -ENOENT);
  kernel_->close(directory);
}

TEST_P(KernelConformance, RenamesOverAnOlderFile) {
  const int old = make_file("a", "old");
  kernel_->close(make_file("b", "new"));
  EXPECT_EQ(rename("b", "a"), 0);
  EXPECT_EQ(content("a"), "new");
  EXPECT_EQ(read(old, 3), "old");
  EXPECT_THAT(names(root_), UnorderedElementsAre("a"));
  EXPECT_EQ(rename("a", "a"), 0);
  EXPECT_EQ(content("a"), "new");
  kernel_->close(old);
}

TEST_P(KernelConformance, RenamesBetweenDirectories) {
  make_directory("d");
  make_directory("e");
  kernel_->close(make_file("d/a", "text"));
  EXPECT_EQ(rename("d/a", "e/b"), 0);
  EXPECT_EQ(content("e/b"), "text");
  EXPECT_EQ(rename("e", "d/e"), 0);
  EXPECT_EQ(content("d/e/b"), "text");
}

TEST_P(KernelConformance, RefusesRenamesThatMakeNoSense) {
  make_directory("d");
  make_directory("full");
  kernel_->close(make_file("full/a", "text"));
  kernel_->close(make_file("a", "text"));
  EXPECT_EQ(rename("a", "d"), -EISDIR);
  EXPECT_EQ(rename("d", "a"), -ENOTDIR);
  EXPECT_EQ(rename("d", "full"), -ENOTEMPTY);
  EXPECT_EQ(rename("d", "d/inside"), -EINVAL);
  EXPECT_EQ(rename("full", "d"), 0) << "an empty directory may be replaced";
  EXPECT_EQ(content("d/a"), "text");
}

TEST_P(KernelConformance, RefusesNamesThatAreTooLong) {
  EXPECT_GE(open(std::string(255, 'x').c_str(), kNewFile), 0);
  EXPECT_EQ(open(std::string(256, 'x').c_str(), kNewFile), -ENAMETOOLONG);
}

TEST_P(KernelConformance, FindsAbsolutePathsWithDotsAndDoubledSlashes) {
  make_directory("d");
  kernel_->close(make_file("d/a", "text"));
  const std::string path = root_path_ + "//./d/./a";
  const int fd = kernel_->openat(AT_FDCWD, path.c_str(), O_RDONLY, 0);
  EXPECT_EQ(read(fd, 4), "text");
  kernel_->close(fd);
}

TEST_P(KernelConformance, SharesAMappingWithTheFile) {
  const int fd = make_file("a", "text");
  ASSERT_EQ(kernel_->fallocate(fd, 0, 8192), 0);
  int error = 0;
  std::byte* base = kernel_->map_shared(fd, 8192, &error);
  ASSERT_NE(base, nullptr) << error;
  EXPECT_EQ(text_of({base, 4}), "text");
  base[5000] = std::byte{'m'};
  EXPECT_EQ(read(fd, 1, 5000), "m");
  write(fd, "w", 5001);
  EXPECT_EQ(text_of({base + 5000, 2}), "mw");
  kernel_->close(fd);
  EXPECT_EQ(text_of({base, 4}), "text") << "a mapping outlives its descriptor";
  EXPECT_EQ(kernel_->unmap(base, 8192), 0);
  EXPECT_EQ(content("a").substr(5000, 2), "mw");
}

TEST_P(KernelConformance, KeepsAMappingInPlaceWhileTheFileGrows) {
  const int fd = make_file("a", "text");
  int error = 0;
  std::byte* base = kernel_->map_shared(fd, 4096, &error);
  ASSERT_NE(base, nullptr) << error;
  const std::string tail(std::size_t{1} << 20, 't');
  EXPECT_EQ(write(fd, tail, 4096), static_cast<std::int64_t>(tail.size()));
  base[0] = std::byte{'T'};
  EXPECT_EQ(read(fd, 4), "Text");
  EXPECT_EQ(kernel_->unmap(base, 4096), 0);
  kernel_->close(fd);
}

TEST_P(KernelConformance, MapsAPartOfAFileForItselfAlone) {
  constexpr std::uint64_t kOffset = 3 * kPageBytes, kLength = 4 * kMiB;
  std::string text(kOffset + kLength, '.');
  for (std::size_t i = 0; i < text.size(); i += 1000)
    text[i] = static_cast<char>('a' + i / 1000 % 26);
  const int fd = make_file("a", text);
  int error = 0;
  std::byte* base = kernel_->map_private(fd, kOffset, kLength, &error);
  ASSERT_NE(base, nullptr) << error;
  EXPECT_EQ(kernel_->populate(base, kLength), 0);
  EXPECT_TRUE(text_of({base, kLength}) == text.substr(kOffset));
  base[kMiB] = std::byte{'!'};
  EXPECT_EQ(read(fd, 1, kOffset + kMiB), text.substr(kOffset + kMiB, 1));
  kernel_->close(fd);
  EXPECT_EQ(text_of({base + kMiB, 1}), "!") << "a mapping outlives its descriptor";
  EXPECT_EQ(kernel_->unmap(base, kLength), 0);
}

TEST_P(KernelConformance, RefusesMappingsThatCannotBe) {
  kernel_->close(make_file("a", "text"));
  const int fd = open("a", O_RDONLY);
  int error = 0;
  EXPECT_EQ(kernel_->map_shared(fd, 4096, &error), nullptr);
  EXPECT_EQ(error, EACCES);
  kernel_->close(fd);
  EXPECT_EQ(kernel_->map_shared(fd, 4096, &error), nullptr);
  EXPECT_EQ(error, EBADF);
  const int writable = open("a", O_RDWR);
  EXPECT_EQ(kernel_->map_shared(writable, 0, &error), nullptr);
  EXPECT_EQ(error, EINVAL);
  kernel_->close(writable);
}

TEST_P(KernelConformance, LetsOneDescriptorAtATimeHoldTheLock) {
  const int first = make_file("a", "");
  const int second = open("a", O_RDWR);
  EXPECT_EQ(kernel_->try_lock(first), 0);
  EXPECT_EQ(kernel_->try_lock(first), 0) << "again by its holder";
  EXPECT_EQ(kernel_->try_lock(second), -EWOULDBLOCK);
  EXPECT_EQ(kernel_->unlock(second), 0);
  EXPECT_EQ(kernel_->try_lock(second), -EWOULDBLOCK) << "only the holder's unlock counts";
  EXPECT_EQ(kernel_->unlock(first), 0);
  EXPECT_EQ(kernel_->try_lock(second), 0);
  kernel_->close(second);
  EXPECT_EQ(kernel_->try_lock(first), 0) << "a lock dies with its descriptor";
  kernel_->close(first);
}

TEST_P(KernelConformance, TellsTheSpaceOfTheFileSystem) {
  sys::FileSystemSpace space{};
  ASSERT_EQ(kernel_->fstatvfs(root_, &space), 0);
  EXPECT_GT(space.free_bytes, 0U);
  EXPECT_GE(space.total_bytes, space.free_bytes);
}

TEST_P(KernelConformance, WritesAllOfAQueueHoweverItIsWaitedFor) {
  const int fd = open("a", kNewFile);
  const auto queue = kernel_->write_queue(2);
  const std::string block(10000, 'q');
  std::vector<std::int64_t> tickets;
  for (std::uint64_t i = 0; i < 7; ++i)
    tickets.push_back(queue->submit(fd, as_byte_view(std::string_view(block)), i * 10000));
  EXPECT_EQ(queue->wait(tickets[5]), 0);
  EXPECT_EQ(queue->wait(tickets[0]), 0);
  for (const std::size_t i : {1U, 2U, 3U, 4U, 6U}) EXPECT_EQ(queue->wait(tickets[i]), 0);
  EXPECT_EQ(read(fd, 80000), std::string(70000, 'q'));
  kernel_->close(fd);
}

TEST_P(KernelConformance, ReportsAQueuedWriteThatFailed) {
  kernel_->close(make_file("a", "text"));
  const int fd = open("a", O_RDONLY);
  const auto queue = kernel_->write_queue(2);
  const std::int64_t ticket = queue->submit(fd, as_byte_view(std::string_view("x")), 0);
  ASSERT_GE(ticket, 0);
  EXPECT_EQ(queue->wait(ticket), -EBADF);
  EXPECT_EQ(queue->wait(ticket), -EINVAL) << "a ticket is good for one wait";
  kernel_->close(fd);
}

TEST_P(KernelConformance, QueuesAnEmptyWrite) {
  const int fd = open("a", kNewFile);
  const auto queue = kernel_->write_queue(1);
  EXPECT_EQ(queue->wait(queue->submit(fd, {}, 0)), 0);
  EXPECT_EQ(size(fd), 0U);
  kernel_->close(fd);
}

}  // namespace
}  // namespace diapause::test_support
