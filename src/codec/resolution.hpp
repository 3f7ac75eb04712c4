// Whether a bound can be kept by values of a floating-point type at all.
#pragma once

#include "codec/codec.hpp"

namespace diapause::codec {

// Code::argument if the largest of `values` has a last place too coarse for the bound of `method` (limit_of_bound in
// outliers.hpp): a codec would store them without loss. Values that are not finite, and a fill value, do not count.
// Says the largest value and the least bound for it. `type` is float32 or float64, and `values` are whole numbers of
// elements of it.
Status check_resolution(const Method& method, format::ElementType type, ByteView values);

}  // namespace diapause::codec
