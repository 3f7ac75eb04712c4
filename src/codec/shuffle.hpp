// Byte shuffle: the first bytes of all elements, then the second ones, and so on ("planes"). Bytes of the same weight
// resemble each other, which is what a compressor of bytes needs.
#pragma once

#include <array>

#include "base/bytes.hpp"

namespace diapause::codec {

inline constexpr std::size_t kMostPlanes = 8;
using Planes = std::array<std::byte*, kMostPlanes>;  // as many as an element has bytes are looked at

// `in` and `out` have the same size, a multiple of `width`, and do not overlap. Width: 2, 4 or 8; 1 copies.
void shuffle(ByteView in, std::size_t width, MutableBytes out);
void unshuffle(ByteView in, std::size_t width, MutableBytes out);

// The same, each plane to a place of its own.
void shuffle_to(ByteView in, std::size_t width, const Planes& planes);

}  // namespace diapause::codec
