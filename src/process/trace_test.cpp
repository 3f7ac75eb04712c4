#include "process/trace.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "process/proc.hpp"

namespace diapause::process {
namespace {

TEST(Trace, SaysThatAProcessHasEndedWhoseMemoryIsGone) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  std::array<std::byte, 1> byte{};
  const Status read = read_any_memory(child, 0x1000, byte);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().os_errno, ESRCH);
  EXPECT_THAT(read.error().message, testing::HasSubstr("has ended"));
  EXPECT_FALSE(has_memory(child));
  EXPECT_TRUE(has_memory(::getpid()));
  ::waitpid(child, nullptr, 0);
}

TEST(Trace, LeavesTheEndOfAChildToItsParent) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  ASSERT_TRUE(attach(child));
  ::kill(child, SIGKILL);
  const auto stop = await_stop(child, 10);
  ASSERT_TRUE(stop);
  EXPECT_TRUE(stop->has_ended);
  const auto ended = next_end();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->si_pid, child);
  EXPECT_EQ(ended->si_status, SIGKILL);
}

TEST(Trace, LetsGoOfWhatHasStoppedWhenItLooksForAnEnd) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  ASSERT_TRUE(attach(child));
  ASSERT_TRUE(ask_to_stop(child));
  siginfo_t stopped{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &stopped, WSTOPPED | WNOWAIT), 0);
  EXPECT_FALSE(next_end());
  const auto status = status_of("/proc/" + std::to_string(child));
  ASSERT_TRUE(status);
  EXPECT_EQ(status->tracer_here, 0);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

// The kernel forgets that a thread was asked to stop when it stops for a child that it has made.
TEST(Trace, StopsAProcessThatMakesChildrenAllTheTime) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) {
      const pid_t made = ::vfork();
      if (made == 0) ::_exit(0);
      ::waitpid(made, nullptr, 0);
    }
  }
  for (int i = 0; i < 3000; ++i) {
    ASSERT_TRUE(attach(child));
    ASSERT_TRUE(ask_to_stop(child));
    const auto lives = await_stillness(child, 60);
    ASSERT_TRUE(lives) << lives.error().message;
    ASSERT_TRUE(*lives);
    ASSERT_TRUE(detach(child));
    ::usleep(static_cast<useconds_t>(i % 100));
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace diapause::process
