#include "sys/pacer.hpp"

#include <gtest/gtest.h>

#include "sys/process.hpp"

namespace diapause::sys {
namespace {

TEST(Pacer, LetsNoMoreThroughThanItsRate) {
  Pacer pacer(1e6);
  const double start_s = monotonic_s();
  for (int i = 0; i < 6; ++i) pacer.pass(10'000);
  // The first passes at once, and each holds back the next for 10 ms.
  EXPECT_GE(monotonic_s() - start_s, 0.05);
}

TEST(Pacer, WithoutARateNeverWaits) {
  Pacer pacer(0);
  const double start_s = monotonic_s();
  for (int i = 0; i < 1000; ++i) pacer.pass(std::uint64_t{1} << 40);
  EXPECT_LT(monotonic_s() - start_s, 1);
}

}  // namespace
}  // namespace diapause::sys
