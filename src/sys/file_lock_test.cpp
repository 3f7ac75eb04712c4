// Tests locks on file systems that have none, and who is reported as the holder.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "sys/file.hpp"
#include "sys/process.hpp"

namespace diapause::sys {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// This is a file system mounted without locks, over this machine's kernel, with only the calls that
// a lock needs.
class WithoutLocks final : public Kernel {
 public:
  bool has_range_locks = false;

  int openat(int directory, const char* path, int flags, mode_t mode) override {
    return real_kernel().openat(directory, path, flags, mode);
  }
  int close(int fd) override { return real_kernel().close(fd); }
  std::int64_t pread(int fd, MutableBytes data, std::uint64_t offset) override {
    return real_kernel().pread(fd, data, offset);
  }
  std::int64_t pwrite(int fd, ByteView data, std::uint64_t offset) override {
    return real_kernel().pwrite(fd, data, offset);
  }
  int fsync(int fd) override { return real_kernel().fsync(fd); }
  int fallocate(int, std::uint64_t, std::uint64_t) override { return -ENOSYS; }
  int ftruncate(int fd, std::uint64_t length) override {
    return real_kernel().ftruncate(fd, length);
  }
  int fstat(int fd, struct stat* out) override { return real_kernel().fstat(fd, out); }
  int fstatvfs(int fd, FileSystemSpace* out) override { return real_kernel().fstatvfs(fd, out); }
  int renameat(int from_directory, const char* from, int to_directory, const char* to) override {
    return real_kernel().renameat(from_directory, from, to_directory, to);
  }
  int unlinkat(int directory, const char* path, int flags) override {
    return real_kernel().unlinkat(directory, path, flags);
  }
  int mkdirat(int directory, const char* path, mode_t mode) override {
    return real_kernel().mkdirat(directory, path, mode);
  }
  int list(int directory, std::vector<DirectoryEntry>* out) override {
    return real_kernel().list(directory, out);
  }
  int try_lock(int) override { return -ENOSYS; }
  int unlock(int) override { return -ENOSYS; }
  int try_range_lock(int fd) override {
    return has_range_locks ? real_kernel().try_range_lock(fd) : -ENOSYS;
  }
  int unlock_range(int fd) override {
    return has_range_locks ? real_kernel().unlock_range(fd) : -ENOSYS;
  }
  std::byte* map_shared(int, std::uint64_t, int* error) override {
    *error = ENOSYS;
    return nullptr;
  }
  int unmap(std::byte*, std::uint64_t) override { return -ENOSYS; }
};

class Locks : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "diapause-locks-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  Directory open(Kernel& kernel) const {
    return std::move(*Directory::open_private(kernel, path_));
  }
  bool has_held_file() const { return std::filesystem::exists(path_ + "/lock.held"); }
  void leave_held_file(const std::string& text) const {
    std::ofstream(path_ + "/lock.held") << text;
  }

  std::string path_;
};

TEST_F(Locks, AreOfTheRangeWhereThereIsNoFlock) {
  WithoutLocks kernel;
  kernel.has_range_locks = true;
  const Directory directory = open(kernel);
  auto lock = FileLock::acquire(directory, "lock", "process 1 on here\n", 0);
  ASSERT_TRUE(lock) << lock.error().message;
  EXPECT_FALSE(has_held_file());
  EXPECT_TRUE(FileLock::is_held(directory, "lock"));
  EXPECT_EQ(FileLock::acquire(directory, "lock", "x\n", 0).error().code, Code::busy);
  { const FileLock over = std::move(*lock); }
  EXPECT_FALSE(FileLock::is_held(directory, "lock"));
  EXPECT_TRUE(FileLock::acquire(directory, "lock", "x\n", 0));
}

TEST_F(Locks, AreAFileWhereThereAreNone) {
  WithoutLocks kernel;
  const Directory directory = open(kernel);
  auto lock = FileLock::acquire(directory, "lock", "process 1 on here\n", 0);
  ASSERT_TRUE(lock) << lock.error().message;
  EXPECT_TRUE(has_held_file());
  EXPECT_TRUE(FileLock::is_held(directory, "lock"));
  const auto second = FileLock::acquire(directory, "lock", "x\n", 0);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::busy);
  EXPECT_THAT(second.error().message, HasSubstr("process 1 on here"));
  { const FileLock over = std::move(*lock); }
  EXPECT_FALSE(has_held_file());
  EXPECT_TRUE(FileLock::acquire(directory, "lock", "x\n", 0));
}

TEST_F(Locks, InAFileEndWithTheProcessThatHeldThem) {
  WithoutLocks kernel;
  const pid_t child = ::fork();
  if (child == 0) {
    const Directory directory = open(kernel);
    const auto lock = FileLock::acquire(directory, "lock", "child\n", 0);
    ::_exit(lock ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_TRUE(has_held_file());
  EXPECT_TRUE(FileLock::acquire(open(kernel), "lock", "x\n", 0));
}

TEST_F(Locks, InAFileOfAnotherMachineAreRespected) {
  WithoutLocks kernel;
  leave_held_file("elsewhere boot 1 2\n0000000000000001\n");
  ASSERT_TRUE(open(kernel).create_file("lock"));
  EXPECT_TRUE(FileLock::is_held(open(kernel), "lock"));
  EXPECT_EQ(FileLock::acquire(open(kernel), "lock", "x\n", 0).error().code, Code::busy);
  EXPECT_TRUE(has_held_file());
}

TEST_F(Locks, InAFileOfThisMachineBeforeItsLastBootAreLeftBehind) {
  WithoutLocks kernel;
  leave_held_file(host_name() + " another-boot 1 2\n0000000000000001\n");
  ASSERT_TRUE(open(kernel).create_file("lock"));
  EXPECT_FALSE(FileLock::is_held(open(kernel), "lock"));
  EXPECT_TRUE(FileLock::acquire(open(kernel), "lock", "x\n", 0));
}

// Takes the lock in a process that leaves a child behind and ends. Returns the child.
pid_t leave_a_child_with_the_lock(const Directory& directory) {
  int pipe[2];
  if (::pipe(pipe) != 0) return -1;
  const pid_t parent = ::fork();
  if (parent == 0) {
    const auto lock = FileLock::acquire(directory, "lock",
                                        "process " + std::to_string(::getpid()) + " on here\n", 0);
    const pid_t child = lock ? ::fork() : -1;
    if (child == 0) {
      ::close(pipe[0]);
      ::close(pipe[1]);
      for (;;) ::pause();
    }
    (void)!::write(pipe[1], &child, sizeof child);
    ::_exit(0);
  }
  pid_t child = -1;
  (void)!::read(pipe[0], &child, sizeof child);
  ::close(pipe[0]);
  ::close(pipe[1]);
  ::waitpid(parent, nullptr, 0);
  return child;
}

TEST_F(Locks, NameTheChildThatHasInheritedThem) {
  const Directory directory = open(real_kernel());
  const pid_t child = leave_a_child_with_the_lock(directory);
  ASSERT_GT(child, 0);
  const auto lock = FileLock::acquire(directory, "lock", "x\n", 0);
  ::kill(child, SIGKILL);
  ASSERT_FALSE(lock);
  EXPECT_THAT(lock.error().message,
              HasSubstr("held now by process " + std::to_string(child) + " ("));
}

TEST_F(Locks, NameTheirHolderOnceWhereItLives) {
  const Directory directory = open(real_kernel());
  const auto first = FileLock::acquire(directory, "lock",
                                       "process " + std::to_string(::getpid()) + " on here\n", 0);
  ASSERT_TRUE(first);
  const auto second = FileLock::acquire(directory, "lock", "x\n", 0);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, Not(HasSubstr("held now by")));
}

}  // namespace
}  // namespace diapause::sys
