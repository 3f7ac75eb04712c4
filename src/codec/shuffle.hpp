// A byte shuffle puts the first bytes of all elements first, then the second bytes, and so on
// ("planes"). Bytes of the same weight resemble each other, which helps a compressor of bytes.
#pragma once

#include <array>

#include "base/bytes.hpp"

namespace diapause::codec {

inline constexpr std::size_t kMostPlanes = 8;
// The places of the planes; only as many are used as an element has bytes.
using Planes = std::array<std::byte*, kMostPlanes>;

// `in` and `out` have the same size, a multiple of `width`, and do not overlap. `width` is 2, 4 or
// 8; 1 copies.
void shuffle(ByteView in, std::size_t width, MutableBytes out);
void unshuffle(ByteView in, std::size_t width, MutableBytes out);

// Shuffles in the same way, each plane to a place of its own.
void shuffle_to(ByteView in, std::size_t width, const Planes& planes);

}  // namespace diapause::codec
