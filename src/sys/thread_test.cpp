#include "sys/thread.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

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

}  // namespace
}  // namespace diapause::sys
