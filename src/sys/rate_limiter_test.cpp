#include "sys/rate_limiter.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "sys/process.hpp"

namespace diapause::sys {
namespace {

// Returns how often this thread has given up its processor to wait, as the kernel counts.
long times_waited() {
  rusage usage{};
  EXPECT_EQ(::getrusage(RUSAGE_THREAD, &usage), 0);
  return usage.ru_nvcsw;
}

TEST(RateLimiter, LetsNoMoreThroughThanItsRate) {
  RateLimiter limiter(1e6);
  const double start_s = monotonic_s();
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(limiter.pass(10'000));
  // The first passes at once, and each delays the next by 10 ms.
  EXPECT_GE(monotonic_s() - start_s, 0.05);
}

TEST(RateLimiter, WithoutARateNeverWaits) {
  RateLimiter limiter(0);
  const long before = times_waited();
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(limiter.pass(std::uint64_t{1} << 40));
  EXPECT_EQ(times_waited(), before);
}

TEST(RateLimiter, LetsNothingThroughOnceTheStreamIsGivenUp) {
  RateLimiter limiter(0);
  bool is_given_up = false;
  limiter.give_up_when([&] { return is_given_up; });
  EXPECT_TRUE(limiter.pass(1));
  is_given_up = true;
  const Status passed = limiter.pass(1);
  ASSERT_FALSE(passed);
  EXPECT_EQ(passed.error().code, Code::off);
}

TEST(RateLimiter, WakesUpWhenTheStreamIsGivenUp) {
  RateLimiter limiter(1);
  int asked = 0;
  limiter.give_up_when([&] { return ++asked == 4; });
  EXPECT_TRUE(limiter.pass(std::uint64_t{1} << 40));
  EXPECT_FALSE(limiter.pass(1));  // it would have to wait for thousands of years
}

}  // namespace
}  // namespace diapause::sys
