// Keeps a stream of bytes below a given rate, and ends it when nobody wants it any more.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.hpp"

namespace diapause::sys {

class RateLimiter {
 public:
  // 0 means no limit.
  explicit RateLimiter(double bytes_per_s) : bytes_per_s_(bytes_per_s) {}

  // `asked` is called in each pass(), and again and again while it sleeps.
  void give_up_when(std::function<bool()> asked) { is_given_up_ = std::move(asked); }

  // Sleeps until `bytes` more may pass. Unused time is not saved up. Code::off says that the stream
  // is given up.
  Status pass(std::uint64_t bytes);

 private:
  double bytes_per_s_;
  std::function<bool()> is_given_up_;  // empty if it never is
  double next_s_ = 0;                  // when the next byte may pass
};

}  // namespace diapause::sys
