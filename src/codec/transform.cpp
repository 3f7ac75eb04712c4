#include "codec/transform.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "codec/clones.hpp"

namespace diapause::codec {
namespace {

// With this many levels, the values that no finer level predicts are too few to matter.
constexpr int kLevels = 5;
// A slice with fewer columns is not worth interpolating.
constexpr std::uint64_t kLeastColumns = 16;

template <class Word>
constexpr Word folded(Word value) {
  return (value << 1) ^
         static_cast<Word>(static_cast<std::make_signed_t<Word>>(value) < 0 ? -1 : 0);
}

// ---- differences ----

template <class Word>
void subtract_rows(Word* __restrict to, const Word* __restrict from, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) to[i] -= from[i];
}

template <class Word>
void add_rows(Word* __restrict to, const Word* __restrict from, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) to[i] += from[i];
}

// A block seen along one dimension: `outer` times `length` rows of `inner` elements.
struct Along {
  std::uint64_t outer = 1, length = 1, inner = 1;
};

Along along(const Dims& dims, std::size_t axis) {
  Along view;
  for (std::size_t i = 0; i < axis; ++i) view.outer *= dims[i];
  view.length = dims[axis];
  for (std::size_t i = axis + 1; i < kMaxBlockDims; ++i) view.inner *= dims[i];
  return view;
}

template <class Word>
void differences(const Along& view, Word* values) {
  for (std::uint64_t o = 0; o < view.outer; ++o, values += view.length * view.inner) {
    if (view.inner == 1) {
      for (std::uint64_t k = view.length; k-- > 1;) values[k] -= values[k - 1];
      continue;
    }
    for (std::uint64_t k = view.length; k-- > 1;) {
      subtract_rows(values + k * view.inner, values + (k - 1) * view.inner, view.inner);
    }
  }
}

template <class Word>
void sums(const Along& view, Word* values) {
  for (std::uint64_t o = 0; o < view.outer; ++o, values += view.length * view.inner) {
    if (view.inner == 1) {
      Word sum = 0;
      for (std::uint64_t k = 0; k < view.length; ++k) values[k] = sum += values[k];
      continue;
    }
    for (std::uint64_t k = 1; k < view.length; ++k) {
      add_rows(values + k * view.inner, values + (k - 1) * view.inner, view.inner);
    }
  }
}

// ---- interpolation ----
//
// At each level the values at odd places are predicted from those at even places, first along the
// columns, then along the rows; the even ones go on to the next level. After the step along a row
// its even values lie together in front, so that every level works on neighbours in memory; rows
// stay where they are.

// Computes (-a + 9 b + 9 c - d) / 16, rounded: the cubic through four equidistant values, at the
// middle.
template <class Word>
Word cubic(Word a, Word b, Word c, Word d) {
  const Word sum = 9 * (b + c) - (a + d) + 8;
  return static_cast<Word>(static_cast<std::make_signed_t<Word>>(sum) >> 4);
}

template <class Word>
Word middle(Word a, Word b) {
  return a + static_cast<Word>(static_cast<std::make_signed_t<Word>>(b - a + 1) >> 1);
}

struct Add {
  template <class Word>
  static void apply(Word& to, Word prediction) {
    to += prediction;
  }
};
struct Subtract {
  template <class Word>
  static void apply(Word& to, Word prediction) {
    to -= prediction;
  }
};

// odd[i] lies between even[i] and even[i + 1], where that exists.
template <class Step, class Word>
void predict_along_row(const Word* __restrict even, std::uint64_t evens, Word* __restrict odd,
                       std::uint64_t odds) {
  const auto edge = [&](std::uint64_t i) {
    Step::apply(odd[i], i + 1 < evens ? middle(even[i], even[i + 1]) : even[i]);
  };
  const std::uint64_t inner_end = evens < 3 ? 0 : std::min(odds, evens - 2);
  if (odds > 0) edge(0);
  for (std::uint64_t i = 1; i < inner_end; ++i) {
    Step::apply(odd[i], cubic(even[i - 1], even[i], even[i + 1], even[i + 2]));
  }
  for (std::uint64_t i = std::max<std::uint64_t>(1, inner_end); i < odds; ++i) edge(i);
}

// One slice at one level: its rows are `stride` elements apart in memory, and their first `columns`
// elements belong to the level.
template <class Word>
struct Grid {
  Word* at;
  std::uint64_t rows, columns, stride;
  Word* row(std::uint64_t r) const { return at + r * stride; }
};

template <class Step, class Word>
void predict_odd_rows(const Grid<Word>& grid) {
  // The even columns, which lie in front.
  const std::uint64_t columns = grid.columns - grid.columns / 2;
  for (std::uint64_t r = 1; r < grid.rows; r += 2) {
    Word* __restrict to = grid.row(r);
    const Word* __restrict b = grid.row(r - 1);
    if (r + 1 >= grid.rows) {
      for (std::uint64_t i = 0; i < columns; ++i) Step::apply(to[i], b[i]);
      continue;
    }
    const Word* __restrict c = grid.row(r + 1);
    if (r < 3 || r + 3 >= grid.rows) {
      for (std::uint64_t i = 0; i < columns; ++i) Step::apply(to[i], middle(b[i], c[i]));
      continue;
    }
    const Word* __restrict a = grid.row(r - 3);
    const Word* __restrict d = grid.row(r + 3);
    for (std::uint64_t i = 0; i < columns; ++i) Step::apply(to[i], cubic(a[i], b[i], c[i], d[i]));
  }
}

template <class Word>
void interpolate_level(const Grid<Word>& grid, Word* scratch) {
  const std::uint64_t odds = grid.columns / 2, evens = grid.columns - odds;
  for (std::uint64_t r = 0; r < grid.rows; ++r) {
    Word* const row = grid.row(r);
    for (std::uint64_t i = 0; i < odds; ++i) {
      scratch[i] = row[2 * i];
      scratch[evens + i] = row[2 * i + 1];
    }
    if (evens > odds) scratch[odds] = row[2 * odds];
    predict_along_row<Subtract>(scratch, evens, scratch + evens, odds);
    std::memcpy(row, scratch, grid.columns * sizeof(Word));
  }
  predict_odd_rows<Subtract>(grid);
}

template <class Word>
void undo_level(const Grid<Word>& grid, Word* scratch) {
  const std::uint64_t odds = grid.columns / 2, evens = grid.columns - odds;
  predict_odd_rows<Add>(grid);
  for (std::uint64_t r = 0; r < grid.rows; ++r) {
    Word* const row = grid.row(r);
    std::memcpy(scratch, row, grid.columns * sizeof(Word));
    predict_along_row<Add>(scratch, evens, scratch + evens, odds);
    for (std::uint64_t i = 0; i < odds; ++i) {
      row[2 * i] = scratch[i];
      row[2 * i + 1] = scratch[evens + i];
    }
    if (evens > odds) row[2 * odds] = scratch[odds];
  }
}

// Returns the grids of all levels of a slice, the finest first.
template <class Word>
std::array<Grid<Word>, kLevels> levels_of(Word* slice, std::uint64_t rows, std::uint64_t columns) {
  std::array<Grid<Word>, kLevels> grids;
  std::uint64_t stride = columns;
  for (Grid<Word>& grid : grids) {
    grid = {slice, rows, columns, stride};
    rows -= rows / 2;
    columns -= columns / 2;
    stride *= 2;
  }
  return grids;
}

template <class Word>
inline void predict_block(const Prediction& prediction, const Dims& dims, std::span<Word> values,
                          Word* row) {
  if (prediction.interpolates) {
    for (std::uint64_t at = 0; at < values.size(); at += dims[2] * dims[3]) {
      for (const Grid<Word>& grid : levels_of(values.data() + at, dims[2], dims[3]))
        interpolate_level(grid, row);
    }
  }
  for (std::size_t axis = 0; axis < kMaxBlockDims; ++axis) {
    if (prediction.axes >> axis & 1) differences(along(dims, axis), values.data());
  }
}

template <class Word>
inline void undo_block(const Prediction& prediction, const Dims& dims, std::span<Word> values,
                       Word* row) {
  for (std::size_t axis = 0; axis < kMaxBlockDims; ++axis) {
    if (prediction.axes >> axis & 1) sums(along(dims, axis), values.data());
  }
  if (!prediction.interpolates) return;
  for (std::uint64_t at = 0; at < values.size(); at += dims[2] * dims[3]) {
    const auto grids = levels_of(values.data() + at, dims[2], dims[3]);
    for (std::size_t level = grids.size(); level-- > 0;) undo_level(grids[level], row);
  }
}

DIAPAUSE_CLONES void predict_words(const Prediction& prediction, const Dims& dims,
                                   std::span<std::uint32_t> values, std::uint32_t* row) {
  predict_block(prediction, dims, values, row);
}
DIAPAUSE_CLONES void predict_words(const Prediction& prediction, const Dims& dims,
                                   std::span<std::uint64_t> values, std::uint64_t* row) {
  predict_block(prediction, dims, values, row);
}
DIAPAUSE_CLONES void undo_words(const Prediction& prediction, const Dims& dims,
                                std::span<std::uint32_t> values, std::uint32_t* row) {
  undo_block(prediction, dims, values, row);
}
DIAPAUSE_CLONES void undo_words(const Prediction& prediction, const Dims& dims,
                                std::span<std::uint64_t> values, std::uint64_t* row) {
  undo_block(prediction, dims, values, row);
}

// ---- the choice ----

// The size of a box in its two fastest dimensions.
constexpr std::uint64_t kBoxRows = 16, kBoxElements = 512;
constexpr std::uint64_t kValuesPerBox = 32768;  // one box for so many values of the block
constexpr std::uint64_t kMostBoxes = 8;

// Returns the size of the sampled boxes. They are three deep, so that differences between slices
// show.
Dims box_dims(const Dims& dims) {
  const std::uint64_t columns = std::min(dims[3], kBoxElements / std::min(dims[2], kBoxRows));
  return {std::min<std::uint64_t>(dims[0], 2), std::min<std::uint64_t>(dims[1], 3),
          std::min(dims[2], kBoxElements / columns), columns};
}

// Returns where box number `box` begins. Boxes are spread over the block in all its dimensions by
// multiples of different fractions.
Dims box_place(const Dims& dims, const Dims& size, std::uint64_t box) {
  constexpr Dims kFractions = {23, 37, 53, 29};  // in 64ths
  Dims first;
  for (std::size_t i = 0; i < kMaxBlockDims; ++i)
    first[i] = (dims[i] - size[i]) * ((32 + box * kFractions[i]) % 64) / 63;
  return first;
}

template <class Word>
void append_box(std::span<const Word> values, const Dims& dims, const Dims& size, const Dims& first,
                std::vector<Word>& sample) {
  for (std::uint64_t a = 0; a < size[0]; ++a) {
    for (std::uint64_t b = 0; b < size[1]; ++b) {
      for (std::uint64_t c = 0; c < size[2]; ++c) {
        const std::uint64_t slice = (first[0] + a) * dims[1] + first[1] + b;
        const auto row =
            values.subspan((slice * dims[2] + first[2] + c) * dims[3] + first[3], size[3]);
        sample.insert(sample.end(), row.begin(), row.end());
      }
    }
  }
}

// Returns the sum of log2(1 + value), with log2 interpolated linearly between powers of two. It
// measures the distance from zero, as a code for the whole block does. The entropy of a sample
// would miss that values which agree in one place differ elsewhere.
template <class Word>
double sum_of_logs(std::span<const Word> values) {
  double sum = 0;
  for (const Word value : values) {
    const auto next = static_cast<double>(value) + 1;
    // Exponent and mantissa form a logarithm in fixed point.
    const auto bits = std::bit_cast<std::uint64_t>(next);
    sum += static_cast<double>(static_cast<std::int64_t>(bits - std::bit_cast<std::uint64_t>(1.0)));
  }
  return sum * 0x1p-52;
}

}  // namespace

template <class Word>
void Transform<Word>::predict(const Prediction& prediction, const Dims& dims,
                              std::span<Word> values) {
  row_.resize(std::max(row_.size(), dims[3]));
  predict_words(prediction, dims, values, row_.data());
}

template <class Word>
void Transform<Word>::undo(const Prediction& prediction, const Dims& dims, std::span<Word> values) {
  row_.resize(std::max(row_.size(), dims[3]));
  undo_words(prediction, dims, values, row_.data());
}

// Returns the cost of the boxes in sample_, without the first index of each dimension. There,
// nothing precedes a value to predict it from, and a whole block has relatively few such values.
template <class Word>
double Transform<Word>::cost_of(const Prediction& prediction, const Dims& size) {
  trial_.assign(sample_.begin(), sample_.end());
  const std::size_t box_values = size[0] * size[1] * size[2] * size[3];
  const std::uint64_t skipped = size[3] > 1 ? 1 : 0;
  double bits = 0;
  for (std::size_t at = 0; at < trial_.size(); at += box_values) {
    const auto box = std::span(trial_).subspan(at, box_values);
    predict(prediction, size, box);
    fold_signs<Word>(box);
    for (std::uint64_t row = 0; row < box_values / size[3]; ++row) {
      const std::uint64_t c = row % size[2], b = row / size[2] % size[1],
                          a = row / size[2] / size[1];
      if ((c == 0 && size[2] > 1) || (b == 0 && size[1] > 1) || (a == 0 && size[0] > 1)) continue;
      bits += sum_of_logs<Word>(box.subspan(row * size[3] + skipped, size[3] - skipped));
    }
  }
  return bits;
}

template <class Word>
Prediction Transform<Word>::choose(const Dims& dims, std::span<const Word> values) {
  const Dims size = box_dims(dims);
  const std::uint64_t boxes =
      std::clamp<std::uint64_t>(values.size() / kValuesPerBox, 1, kMostBoxes);
  sample_.clear();
  for (std::uint64_t box = 0; box < boxes; ++box)
    append_box(values, dims, size, box_place(dims, size, box), sample_);
  std::uint32_t possible = 0;
  for (std::size_t axis = 0; axis < kMaxBlockDims; ++axis)
    possible |= (size[axis] > 1 ? 1u : 0u) << axis;
  Prediction best;
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](const Prediction& prediction) {
    if ((prediction.axes & ~possible) != 0) return;
    const double cost = cost_of(prediction, size);
    if (cost >= least) return;
    least = cost;
    best = prediction;
  };
  for (std::uint32_t axes = 0; axes < 16; ++axes) consider({axes, false});
  if (dims[3] < kLeastColumns) return best;
  // The slices are already predicted.
  for (std::uint32_t axes = 0; axes < 4; ++axes) consider({axes, true});
  return best;
}

template <class Word>
void fold_signs(std::span<Word> values) {
  for (Word& value : values) value = folded(value);
}

template <class Word>
void unfold_signs(std::span<Word> values) {
  for (Word& value : values) value = (value >> 1) ^ (0 - (value & 1));
}

template class Transform<std::uint32_t>;
template class Transform<std::uint64_t>;
template void fold_signs<std::uint32_t>(std::span<std::uint32_t>);
template void fold_signs<std::uint64_t>(std::span<std::uint64_t>);
template void unfold_signs<std::uint32_t>(std::span<std::uint32_t>);
template void unfold_signs<std::uint64_t>(std::span<std::uint64_t>);

}  // namespace diapause::codec
