// Outliers are values that a lossy codec must not see: fill values (one bit pattern that stands for
// "nothing here", far from the data), values that are not finite, and values too large for the
// bound. Their bits are kept exactly, and the codec sees the last sound value before them instead.
//
// Layout in a payload: 4 bytes, 1 if there is a fill value; if there is one, its bits (8 bytes) and
// a packed run of one bit per element, lowest first; 4 bytes, the number of exceptions; if there
// are any, packed runs of their indices (4 bytes each, ascending) and of their bits.
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

// Returns the limit of magnitude for a bound. For a greater value the last place is too coarse:
// four units in it are more than the bound.
template <class Float>
double limit_of_bound(double bound) {
  using Limits = std::numeric_limits<Float>;
  return std::min(std::ldexp(bound, Limits::digits - 3), static_cast<double>(Limits::max()));
}

template <class Float>
class Outliers {
 public:
  using Bits = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;

  // Returns the bits of the fill value if there is one.
  static std::optional<Bits> fill_value(ByteView values, double limit);

  void clear();
  // Returns whether a few values suggest that there is a fill value. Other outliers are not
  // searched.
  bool seem_there(ByteView values, double limit) const;

  // Finds the outliers of `values`, which may have any alignment, and copies all values to `out`
  // (same size) with the outliers replaced. A value above `limit` in magnitude is an outlier.
  // Returns false if there are so many exceptions that a lossy codec gains nothing.
  bool find(ByteView values, double limit, MutableBytes out);

  double greatest() const { return greatest_; }  // magnitude of the values that are no outliers

  // Adds an exception, in ascending order: a value that came back out of bounds. Must not be mixed
  // with other ways to find exceptions.
  void add(std::uint32_t index) { indices_.push_back(index); }

  void write(ByteView values, Packer& packer, Output& out);

  // read() reads what write() wrote of `count` values from the front of `in`. restore() then puts
  // the outliers back into the decoded values.
  Status read(ByteView& in, std::uint64_t count, Unpacker& unpacker);
  void restore(MutableBytes values) const;

 private:
  bool has_fill_ = false;
  Bits fill_ = 0;
  double greatest_ = 0;
  std::vector<std::byte> mask_;         // bits of the fill values
  std::vector<std::uint32_t> indices_;  // where the exceptions are
  std::vector<Bits> exceptions_;        // after read(): their bits
};

}  // namespace diapause::codec
