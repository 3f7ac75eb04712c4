#include "sys/signals.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <csignal>
#include <thread>

namespace diapause::sys {
namespace {

std::atomic<int> heard;  // incremented by the handlers of "the program" below

void count_plain(int) { ++heard; }
void count_with_info(int number, siginfo_t* info, void*) {
  heard += info != nullptr && info->si_signo == number;
}

struct sigaction action_of(int number) {
  struct sigaction action {};
  EXPECT_EQ(::sigaction(number, nullptr, &action), 0);
  return action;
}

void set_action(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  EXPECT_EQ(::sigaction(number, &action, nullptr), 0);
}

class StopSignalsTest : public testing::Test {
 protected:
  void SetUp() override { heard = 0; }
  void TearDown() override {
    for (const int number : {SIGUSR1, SIGUSR2, SIGTERM}) set_action(number, SIG_DFL);
  }

  static std::unique_ptr<StopSignals> taking(std::initializer_list<int> numbers) {
    auto signals = process_stop_signals();
    EXPECT_TRUE(signals->take(std::vector<int>(numbers)));
    return signals;
  }
};

TEST_F(StopSignalsTest, NoteASignalThatWouldHaveEndedTheProgram) {
  const auto signals = taking({SIGTERM, SIGUSR1});
  EXPECT_EQ(signals->received(), 0);
  ::raise(SIGUSR1);
  EXPECT_EQ(signals->received(), SIGUSR1);
  ::raise(SIGTERM);
  EXPECT_EQ(signals->received(), SIGTERM) << "the first in the list";
}

TEST_F(StopSignalsTest, StillCallTheHandlerOfTheProgram) {
  set_action(SIGUSR1, count_plain);
  struct sigaction with_info {};
  with_info.sa_sigaction = count_with_info;
  with_info.sa_flags = SA_SIGINFO;
  ASSERT_EQ(::sigaction(SIGUSR2, &with_info, nullptr), 0);
  const auto signals = taking({SIGUSR1, SIGUSR2});
  ::raise(SIGUSR1);
  EXPECT_EQ(heard, 1);
  ::raise(SIGUSR2);
  EXPECT_EQ(heard, 2);
  EXPECT_EQ(signals->received(), SIGUSR1);
}

TEST_F(StopSignalsTest, PutBackWhatWasThere) {
  set_action(SIGUSR1, count_plain);
  taking({SIGUSR1, SIGTERM}).reset();
  EXPECT_EQ(action_of(SIGUSR1).sa_handler, count_plain);
  EXPECT_EQ(action_of(SIGTERM).sa_handler, SIG_DFL);
}

TEST_F(StopSignalsTest, ServeSeveralAndEachSeesOnlyWhatCameInItsTime) {
  auto first = taking({SIGUSR1});
  ::raise(SIGUSR1);
  const auto second = taking({SIGUSR1});
  EXPECT_EQ(first->received(), SIGUSR1);
  EXPECT_EQ(second->received(), 0);
  first.reset();
  ::raise(SIGUSR1);
  EXPECT_EQ(second->received(), SIGUSR1);
}

TEST_F(StopSignalsTest, AreNotPutOverAHandlerThatMayHandOnToThem) {
  auto signals = taking({SIGUSR1});
  set_action(SIGUSR1, count_plain);
  signals.reset();
  EXPECT_EQ(action_of(SIGUSR1).sa_handler, count_plain);
  signals = taking({SIGUSR1});
  EXPECT_EQ(action_of(SIGUSR1).sa_handler, count_plain);
}

TEST_F(StopSignalsTest, AreTakenAgainAfterTheProgramWentBackToTheDefault) {
  auto signals = taking({SIGUSR1});
  set_action(SIGUSR1, count_plain);
  signals.reset();
  set_action(SIGUSR1, SIG_DFL);
  signals = taking({SIGUSR1});
  ::raise(SIGUSR1);
  EXPECT_EQ(signals->received(), SIGUSR1);
  EXPECT_EQ(heard, 0);
}

TEST_F(StopSignalsTest, ComeInAnyThreadAtAnyRate) {
  const auto signals = taking({SIGUSR1});
  std::array<std::thread, 3> threads;
  for (std::thread& thread : threads) {
    thread = std::thread([] {
      for (int i = 0; i < 200; ++i) ::raise(SIGUSR1);
    });
  }
  while (signals->received() == 0) std::this_thread::yield();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(signals->received(), SIGUSR1);
}

TEST_F(StopSignalsTest, RefuseWhatCannotBeTaken) {
  const auto signals = process_stop_signals();
  const Status taken = signals->take(std::array{SIGKILL});
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().message.find("SIGKILL"), std::string::npos);
  EXPECT_EQ(signals->received(), 0);
}

TEST(SignalNames, LeadThereAndBack) {
  for (const int number : {SIGTERM, SIGUSR1, SIGUSR2, SIGINT, SIGHUP, SIGXCPU}) {
    EXPECT_EQ(signal_number(signal_name(number)), number);
  }
  EXPECT_EQ(signal_number("SIGNOTHING"), std::nullopt);
}

}  // namespace
}  // namespace diapause::sys
