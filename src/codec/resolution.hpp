// Checks whether the values of a floating-point type can be kept within a bound at all.
#pragma once

#include "codec/codec.hpp"

namespace diapause::codec {

// Returns Code::argument, with the largest value and the least possible bound, if the largest of
// `values` has a last place too coarse for the bound of `method` (limit_of_bound() in
// outliers.hpp): a codec would store such values without loss. Values that are not finite, and a
// fill value, do not count. `type` is float32 or float64, and `values` holds a whole number of its
// elements.
Status check_resolution(const Method& method, format::ElementType type, ByteView values);

}  // namespace diapause::codec
