#include "sys/shared_memory.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

namespace diapause::sys {
namespace {

constexpr std::uint64_t kBytes = 10'000;

TEST(SharedMemoryTest, IsZeroAtFirst) {
  const auto memory = SharedMemory::create(kBytes);
  ASSERT_TRUE(memory) << memory.error().message;
  EXPECT_THAT(memory->bytes(), testing::SizeIs(kBytes));
  EXPECT_THAT(memory->bytes(), testing::Each(std::byte{0}));
}

TEST(SharedMemoryTest, IsTheSameInAnotherProcess) {
  const auto memory = SharedMemory::create(kBytes);
  const auto handle = memory->handle();
  ASSERT_TRUE(handle);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto seen = SharedMemory::open(*handle, kBytes);
    if (seen) seen->bytes()[kBytes - 1] = std::byte{7};
    ::_exit(seen ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(memory->bytes()[kBytes - 1], std::byte{7});
}

TEST(SharedMemoryTest, IsNotTakenForAnotherFileOfThatNumber) {
  const auto memory = SharedMemory::create(kBytes);
  const auto other = SharedMemory::create(kBytes);
  auto handle = *memory->handle();
  handle.descriptor = other->handle()->descriptor;
  EXPECT_FALSE(SharedMemory::open(handle, kBytes));
}

TEST(SharedMemoryTest, IsNotTakenForMemoryOfAnotherSize) {
  const auto memory = SharedMemory::create(kBytes);
  EXPECT_FALSE(SharedMemory::open(*memory->handle(), 2 * kBytes));
}

TEST(SharedMemoryTest, StaysWhenTheHandleIsClosedAndCannotBeOpenedAnyMore) {
  auto memory = SharedMemory::create(kBytes);
  const auto handle = *memory->handle();
  memory->close_handle();
  memory->bytes()[0] = std::byte{1};
  EXPECT_FALSE(SharedMemory::open(handle, kBytes));
}

}  // namespace
}  // namespace diapause::sys
