// Values that a lossy codec must not see: fill values (one bit pattern that stands for "nothing here", far from the
// data), those that are not finite, and those too large for the bound. They are kept to the bit, and what the codec
// sees in their place is the last sound value before them.
//
// In a payload: 4 bytes, 1 if there is a fill value; then, if there is one, its bits (8 bytes) and a packed run of one
// bit for each element, lowest first; 4 bytes, number of exceptions; then, if there are any, packed runs of their
// indices (4 bytes each, rising) and of their bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "codec/pack.hpp"

namespace diapause::codec {

// A value of greater magnitude has a last place that is too coarse for the bound: four of these are more than it.
template <class Float>
double limit_of_bound(double bound) {
  using Limits = std::numeric_limits<Float>;
  return std::min(std::ldexp(bound, Limits::digits - 3), static_cast<double>(Limits::max()));
}

template <class Float>
class Outliers {
 public:
  using Bits = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;

  // The bits of the fill value, if there is one.
  static std::optional<Bits> fill_value(ByteView values, double limit);

  void clear();
  // Whether a few values look as if there were a fill value. Other outliers are not looked for.
  bool seem_there(ByteView values, double limit) const;

  // Finds the outliers of `values`, which may have any alignment, and copies all values to `out` (same size) with the
  // outliers filled. What is greater than `limit` in magnitude is an outlier. False if there are so many exceptions
  // that the lossy codec has nothing to gain.
  bool find(ByteView values, double limit, MutableBytes out);

  double greatest() const { return greatest_; }  // magnitude of all that is no outlier

  // More exceptions, in rising order: values that came back out of bounds. Not together with others.
  void add(std::uint32_t index) { indices_.push_back(index); }

  void write(ByteView values, Packer& packer, Output& out);

  // What write() wrote of `count` values, from the front of `in`; then the outliers put back into what was decoded.
  Status read(ByteView& in, std::uint64_t count, Unpacker& unpacker);
  void restore(MutableBytes values) const;

 private:
  bool has_fill_ = false;
  Bits fill_ = 0;
  double greatest_ = 0;
  std::vector<std::byte> mask_;         // of fill values
  std::vector<std::uint32_t> indices_;  // of exceptions
  std::vector<Bits> exceptions_;        // read: their bits
};

}  // namespace diapause::codec
