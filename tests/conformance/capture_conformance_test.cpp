// Tests what every way of capturing must do: the image is that of a plain copy of the memory as it
// was when begin() was called.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "conformance/capture_world.hpp"

namespace diapause::capture {
namespace {

using config::CaptureStrategy;

std::vector<CaptureWay> ways() {
  return {{"Automatic"},
          {"Copy", CaptureStrategy::copy},
          {"CopyOnWrite", CaptureStrategy::copy_on_write},
          {"Incremental", CaptureStrategy::incremental},
          {"ByChecksum", CaptureStrategy::incremental, true},
          {"DrainedByTheCaller", CaptureStrategy::copy_on_write, false, Declaration::changing,
           DrainHost::caller}};
}

std::vector<CaptureWay> ways_with_promises() {
  std::vector<CaptureWay> all = ways();
  all.push_back({"Stable", CaptureStrategy::automatic, false, Declaration::stable});
  all.push_back({"Constant", CaptureStrategy::automatic, false, Declaration::constant});
  return all;
}

std::string name_of(const testing::TestParamInfo<CaptureWay>& info) { return info.param.name; }

class CapturesOfStillMemory : public testing::TestWithParam<CaptureWay> {
 protected:
  CapturesOfStillMemory() : world_(GetParam()) {}
  void expect_two_captures() {
    world_.expect_captured(0);
    world_.expect_captured(0);
  }
  CaptureWorld world_;
};

TEST_P(CapturesOfStillMemory, TakeNothing) { expect_two_captures(); }

TEST_P(CapturesOfStillMemory, TakeEmptyRegionsAmongOthers) {
  for (const std::size_t bytes : {0, 10, 0, 0, 5000, 0}) world_.add(bytes);
  world_.add_at({});
  expect_two_captures();
}

TEST_P(CapturesOfStillMemory, TakeEveryAlignment) {
  for (const std::size_t shift : {0UL, 1UL, 16UL, 4095UL, 100UL}) {
    world_.add(format::kBlockBytes, shift);
    world_.add(2 * format::kBlockBytes + 1, shift);
    world_.add(kPageBytes, shift);
    world_.add(3 * kPageBytes - shift, shift);
  }
  expect_two_captures();
}

TEST_P(CapturesOfStillMemory, TakeHundredsOfRegions) {
  for (std::size_t i = 0; i < 300; ++i) world_.add(i % 7 * 1371, i % 5);
  expect_two_captures();
}

TEST_P(CapturesOfStillMemory, TakeManyMegabytes) {
  world_.add(33 * kMiB + 12345, 16);
  world_.add(9 * kMiB - 1);
  expect_two_captures();
}

TEST_P(CapturesOfStillMemory, TakeNeighboursOfOnePage) {
  const Arena arena(4 * kMiB);
  world_.dice().fill(arena.bytes());
  world_.add_at(arena.bytes().first(kMiB + 100));
  world_.add_at(arena.bytes().subspan(kMiB + 100, kMiB));
  world_.add_at(arena.bytes().subspan(2 * kMiB + 100));
  expect_two_captures();
}

TEST_P(CapturesOfStillMemory, TakeMemoryThatWasNeverTouched) {
  const Arena arena(5 * kMiB);
  world_.add_at(arena.bytes());
  expect_two_captures();
}

INSTANTIATE_TEST_SUITE_P(, CapturesOfStillMemory, testing::ValuesIn(ways_with_promises()), name_of);

class Captures : public testing::TestWithParam<CaptureWay> {
 protected:
  Captures() : world_(GetParam()) {}
  CaptureWorld world_;
};

TEST_P(Captures, HoldTheMemoryAsItWasAtTheBegin) {
  const MutableBytes memory = world_.add(20 * kMiB + 77, 16);
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(world_.begin(0));
    world_.dice().fill(memory);
    world_.expect_drained();
  }
}

TEST_P(Captures, AreRightInSlotsOfAnyOrder) {
  for (const std::size_t bytes : {3 * kMiB + 5, 8 * kMiB, std::uint64_t{100}})
    world_.add(bytes, bytes % 32);
  for (int round = 0; round < 40; ++round) {
    for (std::uint64_t i = world_.dice().below(4); i > 0; --i) world_.scribble();
    ASSERT_TRUE(world_.begin(world_.dice().below(4)));
    for (std::uint64_t i = world_.dice().below(4); i > 0; --i) world_.scribble();
    world_.expect_drained();
  }
}

TEST_P(Captures, SeeWritesBesideWholePages) {
  const MutableBytes memory = world_.add(3 * kMiB, 100);
  for (int round = 0; round < 3; ++round) {
    world_.expect_captured(0);
    (round == 0 ? memory.front() : memory.back()) ^= std::byte{1};
  }
}

TEST_P(Captures, FollowRegionsThatMoveGrowAndGo) {
  for (int i = 0; i < 3; ++i) world_.add(3 * kMiB);
  const Arena other(6 * kMiB);
  world_.dice().fill(other.bytes());
  const auto expect_in_both_slots = [&] {
    for (const std::size_t slot : {0, 1, 0, 1}) {
      world_.scribble();
      world_.expect_captured(slot);
    }
  };
  expect_in_both_slots();
  world_.replace(1, other.bytes());
  expect_in_both_slots();
  world_.replace(1, other.bytes().first(3 * kMiB));
  expect_in_both_slots();
  world_.replace(1, other.bytes().last(3 * kMiB));
  expect_in_both_slots();
  world_.remove(0);
  expect_in_both_slots();
}

TEST_P(Captures, SeeOtherMemoryThatWasMappedAtTheSamePlace) {
  const MutableBytes memory = world_.add(4 * kMiB);
  for (int round = 0; round < 3; ++round) {
    world_.expect_captured(0);
    ASSERT_NE(::mmap(memory.data(), memory.size(), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              MAP_FAILED);
    memory[5] = std::byte{1};
  }
  world_.expect_captured(0);
}

TEST_P(Captures, SeeMemoryThatWasThrownAway) {
  const MutableBytes memory = world_.add(8 * kMiB);
  ::madvise(memory.data(), memory.size(), MADV_HUGEPAGE);
  world_.dice().fill(memory);
  for (int round = 0; round < 3; ++round) {
    world_.expect_captured(0);
    ASSERT_EQ(::madvise(memory.data() + (1 + round) * kMiB, 2 * kMiB, MADV_DONTNEED), 0);
  }
  world_.expect_captured(0);
}

TEST_P(Captures, TakeHugePages) {
  const MutableBytes memory = world_.add(16 * kMiB);
  ::madvise(memory.data(), memory.size(), MADV_DONTNEED);
  ::madvise(memory.data(), memory.size(), MADV_HUGEPAGE);
  world_.dice().fill(memory);
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(world_.begin(0));
    world_.dice().fill(memory.subspan(kMiB, 7 * kMiB));
    world_.expect_drained();
  }
}

TEST_P(Captures, TakeRegionsThatOverlap) {
  const Arena arena(6 * kMiB);
  world_.dice().fill(arena.bytes());
  world_.add_at(arena.bytes());
  world_.add_at(arena.bytes().first(3 * kMiB));
  world_.add_at(arena.bytes().subspan(2 * kMiB, kMiB));
  for (int round = 0; round < 4; ++round) {
    ASSERT_TRUE(world_.begin(static_cast<std::size_t>(round % 2)));
    world_.scribble();
    world_.expect_drained();
  }
}

TEST_P(Captures, DoNotTrustASlotThatWasForgotten) {
  world_.add(4 * kMiB);
  world_.expect_captured(0);
  std::ranges::fill(world_.slot(0), std::byte{0x11});
  world_.forget(0);
  world_.expect_captured(0);
}

TEST_P(Captures, DoNotTrustASlotWhoseCaptureWasAbandoned) {
  const MutableBytes memory = world_.add(4 * kMiB, 16);
  world_.expect_captured(0);
  world_.expect_captured(1);
  world_.dice().fill(memory);
  ASSERT_TRUE(world_.begin(0));
  world_.capturer().abandon();
  world_.dice().fill(memory.first(kMiB));  // nothing is protected: this would wait for ever
  world_.expect_captured(0);
  world_.expect_captured(1);
}

TEST_P(Captures, EndWithTheirCapturer) {
  const MutableBytes memory = world_.add(4 * kMiB);
  ASSERT_TRUE(world_.begin(0));
  world_.restart(world_.options());
  world_.dice().fill(memory);
  world_.expect_captured(0);
}

TEST_P(Captures, AreTakenOneAtATime) {
  world_.add(kMiB);
  ASSERT_TRUE(world_.begin(0));
  EXPECT_EQ(world_.begin(1).error().code, Code::internal);
  world_.expect_drained();
  EXPECT_EQ(world_.capturer().drain().error().code, Code::internal);
  world_.expect_captured(1);
}

TEST_P(Captures, LeaveAForkedChildItsMemory) {
  const MutableBytes memory = world_.add(6 * kMiB);
  world_.expect_captured(0);
  ASSERT_TRUE(world_.begin(0));
  const std::byte first = memory[0];
  const pid_t child = ::fork();
  if (child == 0) {
    for (std::byte& byte : memory) byte ^= std::byte{0xff};
    ::_exit(memory[0] == (first ^ std::byte{0xff}) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(memory[0], first);
  world_.dice().fill(memory);
  world_.expect_drained();
}

// Threads of a program that write without end, but for the moments in which a capture begins.
class BusyProgram {
 public:
  explicit BusyProgram(MutableBytes memory) : memory_(memory) {
    if (::pipe2(pipe_.data(), O_CLOEXEC) != 0) std::abort();
    threads_.emplace_back([this] { loop([this](std::uint64_t round) { store(round); }); });
    threads_.emplace_back([this] { loop([this](std::uint64_t round) { receive(round); }); });
    threads_.emplace_back([this] { loop([this](std::uint64_t round) { store(round * 7919); }); });
  }
  ~BusyProgram() {
    ends_ = true;
    resume();
    for (std::thread& thread : threads_) thread.join();
    for (const int end : pipe_) ::close(end);
  }
  void pause() {
    paused_ = true;
    while (resting_ < static_cast<int>(threads_.size())) std::this_thread::yield();
  }
  void resume() { paused_ = false; }
  bool failed() const { return failed_; }

 private:
  void loop(const std::function<void(std::uint64_t)>& write) {
    for (std::uint64_t round = 0; !ends_; ++round) {
      if (paused_) {
        ++resting_;
        while (paused_) std::this_thread::yield();
        --resting_;
      }
      write(round);
    }
  }
  // ThreadSanitizer cannot know that the kernel keeps these writes and the copy apart.
  __attribute__((no_sanitize("thread"))) void store(std::uint64_t round) {
    const std::uint64_t at = round * 40961 % (memory_.size() - 8);
    for (std::uint64_t i = 0; i < 8; ++i)
      memory_.data()[at + i] = static_cast<std::byte>(round + i);
  }
  // Written by the kernel, inside a system call.
  void receive(std::uint64_t round) {
    std::array<char, 600> message{};
    message.fill(static_cast<char>(round));
    const std::uint64_t at = round * 104729 % (memory_.size() - message.size());
    const auto length = static_cast<ssize_t>(message.size());
    if (::write(pipe_[1], message.data(), message.size()) != length) failed_ = true;
    if (::read(pipe_[0], memory_.data() + at, message.size()) != length) failed_ = true;
  }

  MutableBytes memory_;
  std::array<int, 2> pipe_{};
  std::atomic<bool> paused_ = false;
  std::atomic<bool> ends_ = false;
  std::atomic<bool> failed_ = false;
  std::atomic<int> resting_ = 0;
  std::vector<std::thread> threads_;
};

TEST_P(Captures, HoldStillWhatManyThreadsAndTheKernelWrite) {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "ThreadSanitizer takes what page protection keeps apart for a race";
#endif
#endif
  const MutableBytes memory = world_.add(24 * kMiB + 321, 16);
  BusyProgram program(memory);
  for (std::size_t round = 0; round < 8; ++round) {
    program.pause();
    ASSERT_TRUE(world_.begin(round % 3));
    program.resume();
    world_.expect_drained();
  }
  EXPECT_FALSE(program.failed());
}

INSTANTIATE_TEST_SUITE_P(, Captures, testing::ValuesIn(ways()), name_of);

}  // namespace
}  // namespace diapause::capture
