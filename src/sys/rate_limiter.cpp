#include "sys/rate_limiter.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "sys/process.hpp"

namespace diapause::sys {
namespace {

constexpr double kSleep_s = 0.02;  // before it asks again whether the stream is given up

}  // namespace

Status RateLimiter::pass(std::uint64_t bytes) {
  double now_s = monotonic_s();
  const double start_s = bytes_per_s_ > 0 ? std::max(next_s_, now_s) : now_s;
  if (bytes_per_s_ > 0) next_s_ = start_s + static_cast<double>(bytes) / bytes_per_s_;
  while (true) {
    if (is_given_up_ && is_given_up_())
      return fail(Code::off, "given up when the program closed the instance");
    if (now_s >= start_s) return {};
    const double slice_s = is_given_up_ ? std::min(kSleep_s, start_s - now_s) : start_s - now_s;
    std::this_thread::sleep_for(std::chrono::duration<double>(slice_s));
    now_s = monotonic_s();
  }
}

}  // namespace diapause::sys
