#include "sys/uring_queue.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "sys/file.hpp"

namespace diapause::sys {
namespace {

class UringQueueTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "diapause-uring-XXXXXX").string();
    fd_ = ::mkstemp(pattern.data());
    ASSERT_GE(fd_, 0);
    path_ = pattern;
  }
  void TearDown() override {
    ::close(fd_);
    ::unlink(path_.c_str());
  }

  std::string content() const {
    std::string text(std::filesystem::file_size(path_), '?');
    EXPECT_EQ(::pread(fd_, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    return text;
  }

  int fd_ = -1;
  std::string path_;
};

#define SKIP_WITHOUT_URING(queue) \
  if ((queue) == nullptr) GTEST_SKIP() << "this machine refuses io_uring"

TEST_F(UringQueueTest, KeepsManyMoreWritesThanItsDepthApart) {
  const auto queue = make_uring_queue(4);
  SKIP_WITHOUT_URING(queue);
  std::vector<std::string> blocks;
  for (char c = 'a'; c <= 'z'; ++c) blocks.emplace_back(5000, c);
  std::vector<std::int64_t> tickets;
  std::string expected;
  for (const std::string& block : blocks) {
    tickets.push_back(queue->submit(fd_, as_byte_view(std::string_view(block)), expected.size()));
    expected += block;
  }
  for (auto ticket = tickets.rbegin(); ticket != tickets.rend(); ++ticket)
    EXPECT_EQ(queue->wait(*ticket), 0);
  EXPECT_EQ(content(), expected);
}

TEST_F(UringQueueTest, FinishesItsWritesBeforeItDies) {
  std::string block(8 * kMiB, 'x');
  {
    const auto queue = make_uring_queue(8);
    SKIP_WITHOUT_URING(queue);
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_GE(queue->submit(fd_, as_byte_view(std::string_view(block)).subspan(i * kMiB, kMiB),
                              i * kMiB),
                0);
    }
  }
  const std::string copy = block;
  block.assign(block.size(), 'y');
  EXPECT_TRUE(content() == copy);
}

TEST_F(UringQueueTest, WritesDirectlyFromAlignedMemory) {
  const int direct = ::open(path_.c_str(), O_RDWR | O_DIRECT);
  if (direct < 0) GTEST_SKIP() << "this file system has no direct access";
  const auto queue = make_uring_queue(2);
  SKIP_WITHOUT_URING(queue);
  const AlignedBuffer buffer = std::move(*AlignedBuffer::allocate(kMiB));
  std::fill(buffer.bytes().begin(), buffer.bytes().end(), std::byte{'d'});
  EXPECT_EQ(queue->wait(queue->submit(direct, buffer.bytes(), kMiB)), 0);
  EXPECT_EQ(content().substr(kMiB), std::string(kMiB, 'd'));
  ::close(direct);
}

// The file size limit cuts the write that reaches it short and refuses the rest.
TEST_F(UringQueueTest, ContinuesAShortWriteAndReportsWhatThenFails) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{10000, 10000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(1);
    const auto queue = make_uring_queue(2);
    if (queue == nullptr) ::_exit(0);
    const std::string block(20000, 'x');
    ::_exit(queue->wait(queue->submit(fd_, as_byte_view(std::string_view(block)), 0)) == -EFBIG
                ? 0
                : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  SKIP_WITHOUT_URING(make_uring_queue(1));
  EXPECT_EQ(content(), std::string(10000, 'x'));
}

// Without free descriptors no ring can be made, as where io_uring is forbidden.
TEST_F(UringQueueTest, GivesWayToPlainWritesWhereTheRingIsRefused) {
  const pid_t child = ::fork();
  if (child == 0) {
    rlimit before{};
    if (::getrlimit(RLIMIT_NOFILE, &before) != 0) ::_exit(1);
    const rlimit none{0, before.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &none) != 0) ::_exit(1);
    const bool refused = make_uring_queue(4) == nullptr;
    const auto queue = real_kernel().write_queue(4);
    if (::setrlimit(RLIMIT_NOFILE, &before) != 0 || !refused || queue == nullptr) ::_exit(2);
    ::_exit(queue->wait(queue->submit(fd_, as_byte_view(std::string_view("plain")), 0)) == 0 ? 0
                                                                                             : 3);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(content(), "plain");
}

TEST_F(UringQueueTest, ReadsManyMorePiecesThanItsDepth) {
  const auto queue = make_uring_read_queue(3);
  SKIP_WITHOUT_URING(queue);
  std::string text;
  for (std::size_t i = 0; i < 100000; ++i) text += static_cast<char>('a' + i / 7 % 26);
  ASSERT_EQ(::pwrite(fd_, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  std::string read(text.size(), '?');
  std::vector<std::int64_t> tickets;
  for (std::size_t at = 0; at < read.size(); at += 10000) {
    tickets.push_back(
        queue->submit(fd_, std::as_writable_bytes(std::span(read).subspan(at, 10000)), at));
  }
  for (const std::int64_t ticket : tickets) {
    EXPECT_EQ(queue->wait(ticket), 0);
  }
  EXPECT_EQ(read, text);
}

TEST(ReadQueues, SayThatAFileEndsBefore) {
  std::string pattern = (std::filesystem::temp_directory_path() / "diapause-read-XXXXXX").string();
  const int fd = ::mkstemp(pattern.data());
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::pwrite(fd, "text", 4, 0), 4);
  std::array<std::byte, 6> read{};
  for (auto& queue : {real_kernel().read_queue(2), real_kernel().Kernel::read_queue(2)}) {
    EXPECT_EQ(queue->wait(queue->submit(fd, std::span(read).first(4), 0)), 0);
    EXPECT_EQ(queue->wait(queue->submit(fd, read, 0)), -ENODATA);
    EXPECT_EQ(queue->wait(99), -EINVAL);
  }
  ::close(fd);
  ::unlink(pattern.c_str());
}

}  // namespace
}  // namespace diapause::sys
