// Predictions on integers: each value is replaced by its difference from a prediction by its
// neighbours. The arithmetic is that of unsigned numbers, modulo 2^32 or 2^64, so that every step
// can be undone exactly for any input. Smooth data become small numbers of either sign, in two's
// complement.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codec/block.hpp"

namespace diapause::codec {

// The prediction of a block: first, if `interpolates`, the slices of the two fastest dimensions are
// interpolated; then differences are taken along each dimension in `axes` (bit i: dims[i]).
struct Prediction {
  std::uint32_t axes = 0;
  bool interpolates = false;
  bool operator==(const Prediction&) const = default;
};

template <class Word>  // std::uint32_t or std::uint64_t
class Transform {
 public:
  // Work in place; `values` has as many elements as `dims` describes.
  void predict(const Prediction& prediction, const Dims& dims, std::span<Word> values);
  void undo(const Prediction& prediction, const Dims& dims, std::span<Word> values);

  // Returns the prediction that makes a sample of the block cheapest to store.
  Prediction choose(const Dims& dims, std::span<const Word> values);

 private:
  double cost_of(const Prediction& prediction, const Dims& size);

  std::vector<Word> row_, sample_, trial_;
};

// Map small numbers of either sign to small unsigned numbers and back, in place: 0, -1, 1, -2, ...
// become 0, 1, 2, 3, ...
template <class Word>
void fold_signs(std::span<Word> values);
template <class Word>
void unfold_signs(std::span<Word> values);

}  // namespace diapause::codec
