#include "sys/rate_limiter.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "sys/process.hpp"

namespace diapause::sys {

void RateLimiter::pass(std::uint64_t bytes) {
  if (bytes_per_s_ <= 0) return;
  const double now_s = monotonic_s();
  const double start_s = std::max(next_s_, now_s);
  next_s_ = start_s + static_cast<double>(bytes) / bytes_per_s_;
  if (start_s > now_s) std::this_thread::sleep_for(std::chrono::duration<double>(start_s - now_s));
}

}  // namespace diapause::sys
