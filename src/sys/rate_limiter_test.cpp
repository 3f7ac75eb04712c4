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
  for (int i = 0; i < 6; ++i) limiter.pass(10'000);
  // The first passes at once, and each delays the next by 10 ms.
  EXPECT_GE(monotonic_s() - start_s, 0.05);
}

TEST(RateLimiter, WithoutARateNeverWaits) {
  RateLimiter limiter(0);
  const long before = times_waited();
  for (int i = 0; i < 1000; ++i) limiter.pass(std::uint64_t{1} << 40);
  EXPECT_EQ(times_waited(), before);
}

}  // namespace
}  // namespace diapause::sys
