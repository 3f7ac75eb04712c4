#include "sys/thread.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "sys/process.hpp"

namespace diapause::sys {
namespace {

int own_niceness() { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid))); }

TEST(Thread, GivesWayWithoutTheOthersDoingSo) {
  const int before = own_niceness();
  int niceness = 0;
  unsigned cores = 0;
  Status gave_way;
  {
    const auto thread = Thread::start([&] {
      gave_way = give_way(before + 3, 0);
      niceness = own_niceness();
      cores = usable_cores();
    });
    ASSERT_TRUE(thread);
  }
  EXPECT_TRUE(gave_way) << gave_way.error().message;
  EXPECT_EQ(niceness, before + 3);
  EXPECT_EQ(cores, 1U);
  EXPECT_EQ(own_niceness(), before);
}

TEST(Thread, SaysWhichProcessorItCannotBePinnedTo) {
  Status refused;
  {
    const auto thread = Thread::start([&] { refused = give_way(0, 1023); });
  }
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("1023"), std::string::npos);
}

TEST(ProcessorTime, PassesWhileAThreadComputesAndNotWhileItSleeps) {
  const ProcessorTime before = processor_time();
  while (processor_time().had_s < before.had_s + 0.002) continue;
  const ProcessorTime computed = processor_time();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_LT(processor_time().had_s - computed.had_s, 0.02);
}

// Two threads share one processor.
TEST(ProcessorTime, CountsWhatAThreadWaitsForAProcessor) {
  if (::access("/proc/thread-self/schedstat", R_OK) != 0)
    GTEST_SKIP() << "this kernel does not tell";
  std::atomic<bool> ends = false;
  ProcessorTime time;
  {
    const auto first = Thread::start([&] {
      (void)give_way(0, 0);
      while (!ends) continue;
    });
    const auto second = Thread::start([&] {
      (void)give_way(0, 0);
      while (processor_time().waited_s < 0.005) continue;
      time = processor_time();
      ends = true;
    });
    ASSERT_TRUE(first && second);
  }
  EXPECT_GT(time.waited_s, 0);
}

}  // namespace
}  // namespace diapause::sys
