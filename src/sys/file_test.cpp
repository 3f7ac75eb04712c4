// Tests what only a real file system has: links, pipes, other users, direct access. The other tests
// are in tests/support and also run over a disk in memory.
#include "sys/file.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "sys/hard_links.hpp"

namespace diapause::sys {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class FileOnDisk : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "diapause-sys-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
    auto opened = Directory::open_private(real_kernel(), pattern);
    ASSERT_TRUE(opened) << opened.error().message;
    root_ = std::move(*opened);
  }
  void TearDown() override { fs::remove_all(path_); }

  template <class T>
  static void expect_denied(const Result<T>& result, const std::string& why) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::denied);
    EXPECT_THAT(result.error().message, HasSubstr(why));
  }

  fs::path path_;
  Directory root_;
};

TEST_F(FileOnDisk, DoesNotFollowALinkInAFilesPlace) {
  ASSERT_TRUE(
      root_.create_file("victim")->write_all(as_byte_view(std::string_view("precious")), 0));
  fs::create_symlink("victim", path_ / "link");
  expect_denied(root_.create_file("link"), "/link: it is a symbolic link");
  expect_denied(root_.open_file("link", Access::read_write), "/link: it is a symbolic link");
  expect_denied(FileLock::acquire(root_, "link", "", 0), "/link: it is a symbolic link");
  EXPECT_EQ(fs::file_size(path_ / "victim"), 8U);
}

// The test writes in a process of its own, because without care that ends by SIGXFSZ.
TEST_F(FileOnDisk, RefusesWhatIsLargerThanFilesMayBeAndTheProcessLives) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{10000, 10000};
    const auto file = root_.create_file("large");
    if (!file || ::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(1);
    const auto is_refused = [](const Status& done) {
      return !done && done.error().os_errno == EFBIG;
    };
    if (!is_refused(file->write_all(as_byte_view(std::string_view("text")), 10000))) ::_exit(2);
    if (!is_refused(file->truncate(10001))) ::_exit(3);
    if (!is_refused(file->reserve(10001))) ::_exit(4);
    sigset_t blocked;
    if (::sigprocmask(SIG_BLOCK, nullptr, &blocked) != 0 || ::sigismember(&blocked, SIGXFSZ) != 0)
      ::_exit(5);
    ::_exit(file->write_all(as_byte_view(std::string_view("text")), 0) ? 0 : 6);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(FileOnDisk, DoesNotFollowALinkInADirectorysPlace) {
  ASSERT_TRUE(root_.make_child("d"));
  fs::create_directory_symlink("d", path_ / "link");
  expect_denied(root_.open_child("link"), "symbolic link");
  expect_denied(root_.make_child("link"), "symbolic link");
  expect_denied(Directory::make_private(real_kernel(), path_ / "link"), "symbolic link");
  expect_denied(Directory::open_private(real_kernel(), (path_ / "link").string() + "/"),
                "symbolic link");
  EXPECT_TRUE(Directory::make_private(real_kernel(), path_ / "link" / "below"))
      << "links further up are the site's";
}

TEST_F(FileOnDisk, RemovesLinksAndNotWhatTheyPointTo) {
  ASSERT_TRUE(root_.make_child("kept")->create_file("a"));
  ASSERT_TRUE(root_.make_child("d"));
  fs::create_directory_symlink("../kept", path_ / "d" / "link");
  fs::create_directory_symlink("kept", path_ / "link");
  EXPECT_TRUE(root_.remove_child("d"));
  EXPECT_TRUE(root_.remove_child("link"));
  EXPECT_FALSE(fs::exists(path_ / "d"));
  EXPECT_FALSE(fs::is_symlink(path_ / "link"));
  EXPECT_TRUE(fs::exists(path_ / "kept" / "a"));
}

TEST_F(FileOnDisk, DoesNotWaitForAPipeInAFilesPlace) {
  ASSERT_EQ(::mkfifo((path_ / "pipe").c_str(), 0600), 0);
  expect_denied(root_.open_file("pipe", Access::read), "/pipe is not a regular file");
  expect_denied(root_.open_file("pipe", Access::read_write), "/pipe is not a regular file");
}

TEST_F(FileOnDisk, SaysThatASocketIsNoFile) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = (path_ / "socket").string();
  ASSERT_LT(path.copy(address.sun_path, sizeof address.sun_path), sizeof address.sun_path);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  expect_denied(root_.open_file("socket", Access::read), "/socket is not a regular file");
  ::close(socket);
}

TEST_F(FileOnDisk, KnowsWhetherItHasOtherNames) {
  const auto file = root_.create_file("a");
  ASSERT_TRUE(file);
  EXPECT_FALSE(has_other_names(*file));
  fs::create_hard_link(path_ / "a", path_ / "b");
  EXPECT_TRUE(has_other_names(*file));
}

TEST_F(FileOnDisk, RefusesWhatBelongsToAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_TRUE(root_.create_file("a"));
  ASSERT_TRUE(root_.make_child("d"));
  ASSERT_EQ(::chown((path_ / "a").c_str(), 4711, 4711), 0);
  ASSERT_EQ(::chown((path_ / "d").c_str(), 4711, 4711), 0);
  expect_denied(root_.open_file("a", Access::read), "/a belongs to user 4711 and not to user 0");
  expect_denied(root_.create_file("a"), "/a belongs to user 4711 and not to user 0");
  expect_denied(root_.open_child("d"), "/d belongs to user 4711 and not to user 0");
  expect_denied(Directory::make_private(real_kernel(), path_ / "d"),
                "choose a directory of your own");
}

TEST_F(FileOnDisk, MakesThingsNobodyElseCanRead) {
  const mode_t old = ::umask(0);
  ASSERT_TRUE(Directory::make_private(real_kernel(), path_ / "x" / "y"));
  ASSERT_TRUE(root_.create_file("a"));
  ASSERT_TRUE(FileLock::acquire(root_, "lock", "", 0));
  ::umask(old);
  const auto private_directory = fs::perms::owner_all;
  const auto private_file = fs::perms::owner_read | fs::perms::owner_write;
  EXPECT_EQ(fs::status(path_ / "x").permissions(), private_directory);
  EXPECT_EQ(fs::status(path_ / "x" / "y").permissions(), private_directory);
  EXPECT_EQ(fs::status(path_ / "a").permissions(), private_file);
  EXPECT_EQ(fs::status(path_ / "lock").permissions(), private_file);
}

TEST_F(FileOnDisk, LeavesNoDescriptorToProgramsThatAreStarted) {
  const auto file = root_.create_file("a");
  const auto child = root_.make_child("d");
  EXPECT_EQ(::fcntl(file->fd(), F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(::fcntl(child->fd(), F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(::fcntl(root_.fd(), F_GETFD), FD_CLOEXEC);
}

TEST_F(FileOnDisk, FreesTheLockAlthoughAForkedChildHasItsDescriptor) {
  int hold[2];
  ASSERT_EQ(::pipe(hold), 0);
  pid_t child = -1;
  {
    const auto held = FileLock::acquire(root_, "lock", "parent", 0);
    ASSERT_TRUE(held);
    child = ::fork();
    if (child == 0) {
      ::close(hold[1]);
      char end = 0;
      ::_exit(::read(hold[0], &end, 1) == 0 ? 0 : 1);
    }
  }
  EXPECT_TRUE(FileLock::acquire(root_, "lock", "next", 0));
  ::close(hold[1]);
  ::close(hold[0]);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST_F(FileOnDisk, TellsWhetherALockIsHeld) {
  EXPECT_FALSE(FileLock::is_held(root_, "lock"));
  EXPECT_FALSE(fs::exists(path_ / "lock"));
  {
    const auto held = FileLock::acquire(root_, "lock", "somebody", 0);
    EXPECT_TRUE(FileLock::is_held(root_, "lock"));
  }
  EXPECT_FALSE(FileLock::is_held(root_, "lock"));
}

// The lock is held until the end of the test, so that a wait without a limit would not return.
TEST_F(FileOnDisk, WaitsForTheLockAsLongAsAsked) {
  auto held = FileLock::acquire(root_, "lock", "holder", 0);
  ASSERT_TRUE(held);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(FileLock::acquire(root_, "lock", "next", 0.1));
  const double waited_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_GE(waited_s, 0.1);
}

TEST_F(FileOnDisk, ClosesWhatItOpened) {
  const auto open_descriptors = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  const auto before = open_descriptors();
  for (int i = 0; i < 3; ++i) {
    auto child = Directory::make_private(real_kernel(), path_ / "x" / "y");
    auto file = child->create_file("a");
    file = child->open_file("a", Access::read);
    const File moved = std::move(*file);
    EXPECT_TRUE(child->list());
    EXPECT_FALSE(child->open_file("no", Access::read));
    EXPECT_TRUE(FileLock::acquire(*child, "lock", "", 0));
    EXPECT_TRUE(root_.remove_child("x"));
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(AlignedBuffer, BeginsOnAPageAndSaysWhenThereIsNoMemory) {
  auto buffer = AlignedBuffer::allocate(10000);
  ASSERT_TRUE(buffer);
  EXPECT_EQ(buffer->bytes().size(), 10000U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->bytes().data()) % kPageBytes, 0U);
  const AlignedBuffer moved = std::move(*buffer);
  EXPECT_EQ(buffer->bytes().size(), 0U);
  EXPECT_EQ(moved.bytes().size(), 10000U);
  EXPECT_TRUE(AlignedBuffer::allocate(0)->bytes().empty());
}

TEST(PlainName, IsOneComponentOfAPath) {
  EXPECT_TRUE(is_plain_name("r0.img"));
  EXPECT_TRUE(is_plain_name("..."));
  EXPECT_TRUE(is_plain_name(std::string(255, 'x')));
  EXPECT_FALSE(is_plain_name(std::string(256, 'x')));
  EXPECT_FALSE(is_plain_name(".."));
}

TEST(Space, IsKnownToBeMemoryWhereItIs) {
  struct stat there;
  if (::stat("/dev/shm", &there) != 0) GTEST_SKIP() << "no tmpfs at its usual place";
  const auto kind = [](const char* path) {
    FileSystemSpace space{};
    const int fd = real_kernel().openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    EXPECT_EQ(real_kernel().fstatvfs(fd, &space), 0);
    real_kernel().close(fd);
    return space.is_memory;
  };
  EXPECT_TRUE(kind("/dev/shm"));
  EXPECT_FALSE(kind("/proc"));
}

}  // namespace
}  // namespace diapause::sys
