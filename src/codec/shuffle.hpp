// Byte shuffle: the first bytes of all elements, then the second ones, and so on ("planes"). Bytes of the same weight
// resemble each other, which is what a compressor of bytes needs.
#pragma once

#include "base/bytes.hpp"

namespace diapause::codec {

// `in` and `out` have the same size, a multiple of `width`, and do not overlap. Width: 2, 4 or 8; any other copies.
void shuffle(ByteView in, std::size_t width, MutableBytes out);
void unshuffle(ByteView in, std::size_t width, MutableBytes out);

}  // namespace diapause::codec
