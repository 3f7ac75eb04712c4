// Keeps a stream of bytes below a given rate.
#pragma once

#include <cstdint>

namespace diapause::sys {

class RateLimiter {
 public:
  // 0 means no limit.
  explicit RateLimiter(double bytes_per_s) : bytes_per_s_(bytes_per_s) {}

  // Sleeps until `bytes` more may pass. Unused time is not saved up.
  void pass(std::uint64_t bytes);

 private:
  double bytes_per_s_;
  double next_s_ = 0;  // when the next byte may pass
};

}  // namespace diapause::sys
