// What decides whether a lossy block may be kept: every value is looked at.
#pragma once

#include <optional>

#include "codec/block.hpp"

namespace diapause::codec {

// The greatest absolute error, if every finite value of `raw` is within `bound` in `decoded` and every other one has
// the same bits; else nothing. Both have the same size, a whole
// number of elements of the floating-point type of `shape`.
std::optional<double> greatest_error(ByteView raw, ByteView decoded, const Shape& shape, double bound);

}  // namespace diapause::codec
