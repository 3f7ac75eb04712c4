// Decides whether a lossy block may be kept, by comparing every value.
#pragma once

#include <optional>

#include "codec/block.hpp"

namespace diapause::codec {

// Returns the greatest absolute error if every finite value of `raw` is within `bound` in `decoded`
// and every other value has the same bits; otherwise nullopt. Both have the same size, a whole
// number of elements of the floating-point type of `shape`.
std::optional<double> greatest_error(ByteView raw, ByteView decoded, const Shape& shape,
                                     double bound);

}  // namespace diapause::codec
