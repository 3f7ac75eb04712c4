#include "process/freeze.hpp"

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <functional>
#include <thread>
#include <vector>

#include "process/begin_again.hpp"

namespace diapause::process {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

// A job of one process beside process 1. first() is negative if this machine allows no namespaces.
class OneProcess {
 public:
  explicit OneProcess(const std::function<void()>& work) {
    std::array<int, 2> ready{};
    EXPECT_EQ(::pipe(ready.data()), 0);
    first_ = static_cast<pid_t>(
        ::syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0));
    if (first_ == 0) {
      const pid_t child = ::fork();
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // its child ends with it
      if (child == 0) {
        work();
        ::_exit(0);
      }
      (void)!::write(ready[1], "x", 1);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char word = 0;
    (void)!::read(ready[0], &word, 1);
    ::close(ready[0]);
  }
  OneProcess(const OneProcess&) = delete;
  OneProcess& operator=(const OneProcess&) = delete;
  ~OneProcess() {
    if (first_ <= 0) return;
    ::kill(first_, SIGKILL);
    ::waitpid(first_, nullptr, 0);
  }
  pid_t first() const { return first_; }
  pid_t process() const {
    const std::vector<pid_t> all = processes_with(first_).value();
    const auto other = std::ranges::find_if(all, [&](pid_t one) { return one != first_; });
    return other == all.end() ? 0 : *other;
  }

 private:
  pid_t first_ = 0;
};

// A freeze interrupts the call, and the kernel then says only that it has begun it anew.
TEST(Freeze, KnowsWhenACallEndsThatAFreezeHasInterruptedBefore) {
  const OneProcess job([] {
    const timespec length{1000, 0};
    ::nanosleep(&length, nullptr);
  });
  if (job.first() < 0) GTEST_SKIP() << "no namespaces";
  ::usleep(100'000);
  TimedCalls timed;
  std::array<std::uint64_t, 2> ends{};
  for (std::uint64_t& end_ns : ends) {
    auto frozen = FrozenJob::freeze(job.first(), timed, false);
    ASSERT_TRUE(frozen) << frozen.error().message;
    const FrozenThread& thread = frozen->processes().at(0).leader();
    ASSERT_EQ(thread.call, SYS_clock_nanosleep);  // as the C library has it
    end_ns = thread.end_ns.value_or(0);
    ASSERT_TRUE(frozen->thaw());
    ::usleep(300'000);
  }
  EXPECT_NEAR(static_cast<double>(ends[0]), static_cast<double>(monotonic_ns() + 1000 * kSecond),
              static_cast<double>(5 * kSecond));
  EXPECT_EQ(ends[0], ends[1]);
}

// What a process and the test share.
struct Board {
  std::atomic<std::uint32_t> rounds{0};
  std::atomic<std::uint64_t> entry{0}, stack{0}, thread_area{0}, id_at{0};
};
Board* board = nullptr;

// Tells where it is to begin again, and ends for the kernel alone.
[[noreturn]] void leave() {
  std::uint64_t area = 0;
  asm("mov %%fs:0, %0" : "=r"(area));
  board->thread_area = area;
  board->rounds = static_cast<std::uint32_t>(++errno);  // which is in that storage
  for (;;) ::syscall(SYS_exit, 0);
}

TEST(BeginAgain, BeginsAThreadThatHasLeftItsStackBehind) {
  void* const shared =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  board = new (shared) Board;
  const OneProcess job([] {
    std::thread([] {
      std::uint64_t at = 0;
      ::prctl(PR_GET_TID_ADDRESS, &at);
      const auto frame = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
      board->stack = (frame & ~std::uint64_t{15}) - 8;
      board->entry = reinterpret_cast<std::uint64_t>(&leave);
      board->id_at = at;
      leave();
    }).detach();
    for (;;) ::pause();
  });
  if (job.first() < 0) GTEST_SKIP() << "no namespaces";
  const auto await_round = [](std::uint32_t round) {
    for (int tries = 0; tries < 10'000 && board->rounds != round; ++tries) ::usleep(1000);
    ASSERT_EQ(board->rounds, round);
    ::usleep(50'000);  // until the thread has ended
  };
  const pid_t process = job.process();
  TimedCalls timed;
  for (std::uint32_t round = 1; round < 20; ++round) {
    ASSERT_NO_FATAL_FAILURE(await_round(round));
    const sys::EndedThread thread{process, board->entry, board->stack, board->thread_area,
                                  board->id_at};
    const Status begun = begin_again(job.first(), timed, std::span(&thread, 1));
    ASSERT_TRUE(begun) << begun.error().message;
  }
  await_round(20);
  EXPECT_EQ(numbers_in("/proc/" + std::to_string(process) + "/task").value().size(), 1U);
  ::munmap(shared, sizeof(Board));
}

TEST(BeginAgain, PassesOverAProcessThatHasEnded) {
  const OneProcess job([] {
    for (;;) ::pause();
  });
  if (job.first() < 0) GTEST_SKIP() << "no namespaces";
  const pid_t process = job.process();
  ::kill(process, SIGKILL);
  ::usleep(100'000);
  TimedCalls timed;
  const sys::EndedThread thread{process, 1, 2, 3, 4096};
  EXPECT_TRUE(begin_again(job.first(), timed, std::span(&thread, 1)));
}

}  // namespace
}  // namespace diapause::process
