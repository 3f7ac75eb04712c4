#include "comm/relay.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace diapause::comm {
namespace {

TEST(Relay, TakesTheStepsOfAThreadInTheThreadThatComesBy) {
  Relay relay;
  relay.engage();
  std::atomic<bool> is_carried_out = false;
  std::thread::id taken_in;
  int steps = 0;
  std::thread other([&] {
    relay.carry_out([&] {
      taken_in = std::this_thread::get_id();
      return ++steps == 3;
    });
    is_carried_out = true;
  });
  while (!is_carried_out) relay.advance();
  other.join();
  EXPECT_EQ(taken_in, std::this_thread::get_id());
  EXPECT_EQ(steps, 3);
}

TEST(Relay, DoesNotWaitForAStepThatIsNotDone) {
  Relay relay;
  relay.engage();
  std::atomic<int> steps = 0;
  std::atomic<bool> may_end = false;
  std::thread other([&] {
    relay.carry_out([&] {
      ++steps;
      return may_end.load();
    });
  });
  while (steps == 0) relay.advance();
  const int before = steps;
  relay.advance();
  EXPECT_EQ(steps, before + 1);
  may_end = true;
  relay.advance();
  other.join();
}

TEST(Relay, WaitsForAStepAsLongAsItIsTold) {
  Relay relay;
  relay.engage();
  std::atomic<int> steps = 0;
  std::atomic<bool> is_carried_out = false;
  std::thread other([&] {
    relay.carry_out([&] { return ++steps == 20; });
    is_carried_out = true;
  });
  while (steps == 0) relay.advance();
  relay.advance(3600);  // does not wait for what is done
  EXPECT_EQ(steps, 20);
  other.join();
  EXPECT_TRUE(is_carried_out);
}

TEST(Relay, TakesTheStepsItselfBeforeAnotherThreadIsThere) {
  Relay relay;
  int steps = 0;
  relay.carry_out([&] { return ++steps == 2; });
  EXPECT_EQ(steps, 2);
}

TEST(Relay, HasNothingToDoWhenNobodyCommunicates) {
  Relay relay;
  relay.engage();
  relay.advance();
}

}  // namespace
}  // namespace diapause::comm
