// Keeps a stream of bytes below a rate.
#pragma once

#include <cstdint>

namespace diapause::sys {

class Pacer {
 public:
  // 0: no limit.
  explicit Pacer(double bytes_per_s) : bytes_per_s_(bytes_per_s) {}

  // Sleeps until `bytes` more may pass. What was not used while nothing was sent is not saved up.
  void pass(std::uint64_t bytes);

 private:
  double bytes_per_s_;
  double next_s_ = 0;  // when the next byte may pass
};

}  // namespace diapause::sys
