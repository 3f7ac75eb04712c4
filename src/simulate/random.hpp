// Gives random numbers that are equal on every machine and with every compiler. The generator is
// SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014).
#pragma once

#include <cmath>
#include <cstdint>

namespace diapause::simulate {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }

  // Returns a number above 0 and at most 1.
  double uniform() { return (static_cast<double>(next() >> 11) + 1) * 0x1p-53; }
  // Returns an exponentially distributed number with mean 1.
  double exponential() { return -std::log(uniform()); }
  // Returns a number below `bound`, which is above 0 and at most 2^32.
  std::uint64_t below(std::uint64_t bound) { return ((next() >> 32) * bound) >> 32; }

 private:
  std::uint64_t state_;
};

}  // namespace diapause::simulate
