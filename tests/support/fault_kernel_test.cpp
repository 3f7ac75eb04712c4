#include "support/fault_kernel.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/file_helpers.hpp"
#include "support/volatile_disk.hpp"

namespace diapause::test_support {
namespace {

using testing::ElementsAre;

class FaultKernelTest : public testing::Test {
 protected:
  int create(FaultKernel& kernel, const char* path) {
    return kernel.openat(AT_FDCWD, path, kNewFile, 0600);
  }

  VolatileDisk disk_;
};

TEST_F(FaultKernelTest, PassesEverythingOnAndCountsItByKind) {
  FaultKernel kernel(disk_);
  const int fd = create(kernel, "/a");
  EXPECT_EQ(kernel.pwrite(fd, bytes("text"), 0), 4);
  EXPECT_EQ(kernel.pwrite(fd, bytes("more"), 4), 4);
  EXPECT_EQ(kernel.fsync(fd), 0);
  EXPECT_EQ(kernel.calls(), 4U);
  EXPECT_EQ(kernel.calls(Call::pwrite), 2U);
  EXPECT_EQ(kernel.calls(Call::fsync), 1U);
  EXPECT_EQ(content(disk_, "/a"), "textmore");
  EXPECT_FALSE(kernel.reached());
}

TEST_F(FaultKernelTest, StopsForGoodAtTheCallWithThatNumber) {
  FaultKernel kernel(disk_, {Fault::stop, 2});
  const int fd = create(kernel, "/a");
  EXPECT_EQ(kernel.pwrite(fd, bytes("text"), 0), 4);
  EXPECT_FALSE(kernel.stopped());
  EXPECT_EQ(kernel.pwrite(fd, bytes("more"), 4), -EIO);
  EXPECT_TRUE(kernel.stopped());
  EXPECT_EQ(kernel.unlinkat(AT_FDCWD, "/a", 0), -EIO);
  EXPECT_EQ(content(disk_, "/a"), "text");
}

TEST_F(FaultKernelTest, GivesBackDescriptorsAndLocksOfAStoppedProcess) {
  FaultKernel dying(disk_, {Fault::stop, 2});
  const int fd = create(dying, "/a");
  EXPECT_EQ(dying.try_lock(fd), 0);
  EXPECT_EQ(dying.close(fd), -EIO);
  EXPECT_EQ(disk_.close(fd), -EBADF);
  FaultKernel next(disk_);
  EXPECT_EQ(next.try_lock(create(next, "/a")), 0);
}

TEST_F(FaultKernelTest, FailsOneCallOfAKindAndGoesOn) {
  FaultKernel kernel(disk_, {Fault::fail_once, 1, Call::pwrite, ENOSPC});
  const int fd = create(kernel, "/a");
  EXPECT_EQ(kernel.fsync(fd), 0);
  EXPECT_EQ(kernel.pwrite(fd, bytes("1"), 0), 1);
  EXPECT_FALSE(kernel.reached());
  EXPECT_EQ(kernel.pwrite(fd, bytes("2"), 1), -ENOSPC);
  EXPECT_TRUE(kernel.reached());
  EXPECT_EQ(kernel.pwrite(fd, bytes("3"), 1), 1);
  EXPECT_EQ(content(disk_, "/a"), "13");
}

TEST_F(FaultKernelTest, FailsAllCallsOfAKindFromOneOn) {
  FaultKernel kernel(disk_, {Fault::fail_from_here, 1, Call::fsync, EIO});
  const int fd = create(kernel, "/a");
  EXPECT_EQ(kernel.fsync(fd), 0);
  EXPECT_EQ(kernel.fsync(fd), -EIO);
  EXPECT_EQ(kernel.pwrite(fd, bytes("1"), 0), 1);
  EXPECT_EQ(kernel.fsync(fd), -EIO);
}

TEST_F(FaultKernelTest, InterruptsACallOnce) {
  FaultKernel kernel(disk_, {Fault::interrupt_once, 0, Call::fsync});
  const int fd = create(kernel, "/a");
  EXPECT_EQ(kernel.fsync(fd), -EINTR);
  EXPECT_EQ(kernel.fsync(fd), 0);
}

TEST_F(FaultKernelTest, MovesHalfOfATransfer) {
  FaultKernel writing(disk_, {Fault::short_transfer, 0, Call::pwrite});
  EXPECT_EQ(writing.pwrite(create(writing, "/a"), bytes("12345678"), 0), 4);
  EXPECT_EQ(content(disk_, "/a"), "1234");
  FaultKernel reading(disk_, {Fault::short_transfer, 0, Call::pread});
  std::byte byte{};
  const int fd = reading.openat(AT_FDCWD, "/a", O_RDONLY, 0);
  EXPECT_EQ(reading.pread(fd, MutableBytes(&byte, 1), 0), 1) << "at least one byte";
  FaultKernel paged(disk_, {Fault::short_transfer, 0, Call::pwrite});
  EXPECT_EQ(paged.pwrite(create(paged, "/a"), bytes(std::string(3 * kPageBytes, 'p')), 0), 4096);
}

TEST_F(FaultKernelTest, SweepsTheWritesOfItsQueueToo) {
  FaultKernel kernel(disk_, {Fault::fail_once, 1, Call::pwrite, ENOSPC});
  const int fd = create(kernel, "/a");
  const auto queue = kernel.write_queue(4);
  const std::int64_t first = queue->submit(fd, bytes("1"), 0);
  const std::int64_t second = queue->submit(fd, bytes("2"), 1);
  EXPECT_EQ(queue->wait(second), -ENOSPC);
  EXPECT_EQ(queue->wait(first), 0);
}

TEST_F(FaultKernelTest, ContinuesAShortOrInterruptedWriteInItsQueue) {
  for (const Fault fault : {Fault::short_transfer, Fault::interrupt_once}) {
    FaultKernel kernel(disk_, {fault, 0, Call::pwrite});
    const int fd = create(kernel, "/a");
    const auto queue = kernel.write_queue(4);
    EXPECT_EQ(queue->wait(queue->submit(fd, bytes("12345678"), 0)), 0);
    EXPECT_TRUE(kernel.reached());
    EXPECT_EQ(content(disk_, "/a"), "12345678");
  }
}

TEST_F(FaultKernelTest, FailsAMapping) {
  FaultKernel kernel(disk_, {Fault::fail_once, 0, Call::map_shared, ENOMEM});
  const int fd = create(kernel, "/a");
  int error = 0;
  EXPECT_EQ(kernel.map_shared(fd, 4096, &error), nullptr);
  EXPECT_EQ(error, ENOMEM);
  std::byte* base = kernel.map_shared(fd, 4096, &error);
  EXPECT_NE(base, nullptr);
  EXPECT_EQ(kernel.unmap(base, 4096), 0);
}

TEST_F(FaultKernelTest, CountsTheCallsOfSeveralThreads) {
  FaultKernel kernel(disk_);
  kernel.record_trace("/");
  std::vector<std::thread> threads;
  for (const char* path : {"/a", "/b", "/c"}) {
    threads.emplace_back([&kernel, path] {
      for (int i = 0; i < 100; ++i) {
        const int fd = kernel.openat(AT_FDCWD, path, kNewFile, 0600);
        kernel.pwrite(fd, bytes(path), 0);
        kernel.fsync(fd);
        kernel.close(fd);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(kernel.calls(), 1200U);
  EXPECT_EQ(kernel.trace().size(), 1200U);
  EXPECT_EQ(content(disk_, "/b"), "/b");
}

TEST_F(FaultKernelTest, TracesCallsWithPathsBelowItsRoot) {
  FaultKernel kernel(disk_, {Fault::fail_once, 0, Call::fsync, EIO});
  kernel.mkdirat(AT_FDCWD, "/root", 0700);
  kernel.mkdirat(AT_FDCWD, "/root/v3", 0700);
  kernel.record_trace("/root");
  const int directory = kernel.openat(AT_FDCWD, "/root/v3", O_RDONLY | O_DIRECTORY, 0);
  const int fd = kernel.openat(directory, "r0.img.tmp", kNewFile, 0600);
  kernel.fsync(fd);
  kernel.renameat(directory, "r0.img.tmp", directory, "r0.img");
  kernel.close(fd);
  EXPECT_THAT(kernel.trace(),
              ElementsAre("openat v3", "openat v3/r0.img.tmp", "fsync v3/r0.img.tmp = -5",
                          "renameat v3/r0.img.tmp to v3/r0.img", "close v3/r0.img.tmp"));
}

}  // namespace
}  // namespace diapause::test_support
