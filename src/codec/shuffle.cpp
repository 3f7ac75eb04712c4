#include "codec/shuffle.hpp"

#include <cstdint>
#include <cstring>

namespace diapause::codec {
namespace {

// This vector type of the compiler works on any processor. Wider vectors gain nothing, because this
// is already as fast as memory.
using Vector = std::uint8_t __attribute__((vector_size(16)));
constexpr std::size_t kLanes = sizeof(Vector);

// Interleaving the first half of W vectors with the second half moves the byte at position p of the
// 16 W to position 2p, modulo their number less one: it rotates the bits of p to the left. The
// shuffle of 16 elements of W bytes is a rotation by four, and its inverse is one by log2(W).
template <std::size_t W>
inline void rotate(Vector (&vectors)[W], int steps) {
  for (int step = 0; step < steps; ++step) {
    Vector next[W];
    for (std::size_t k = 0; k < W / 2; ++k) {
      const Vector a = vectors[k], b = vectors[k + W / 2];
      next[2 * k] =
          __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      next[2 * k + 1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29,
                                                14, 30, 15, 31);
    }
    std::memcpy(vectors, next, sizeof next);
  }
}

// A whole cache line is written for each plane at a time. Planes are often a power of two apart,
// and their lines would evict each other from the first-level cache before they are full.
constexpr std::size_t kTogether = 64 / kLanes;

template <std::size_t W, std::size_t Times>
inline void shuffle_some(const std::byte* in, std::size_t i, const Planes& planes) {
  Vector lines[W][Times];
  for (std::size_t t = 0; t < Times; ++t) {
    Vector vectors[W];
    std::memcpy(vectors, in + (i + t * kLanes) * W, sizeof vectors);
    rotate(vectors, 4);
    for (std::size_t b = 0; b < W; ++b) lines[b][t] = vectors[b];
  }
  for (std::size_t b = 0; b < W; ++b) std::memcpy(planes[b] + i, lines[b], sizeof lines[b]);
}

template <std::size_t W>
void shuffle_planes(ByteView in, const Planes& planes) {
  const std::size_t count = in.size() / W;
  std::size_t i = 0;
  for (; i + kTogether * kLanes <= count; i += kTogether * kLanes)
    shuffle_some<W, kTogether>(in.data(), i, planes);
  for (; i + kLanes <= count; i += kLanes) shuffle_some<W, 1>(in.data(), i, planes);
  for (; i < count; ++i) {
    for (std::size_t b = 0; b < W; ++b) planes[b][i] = in[i * W + b];
  }
}

template <std::size_t W>
void unshuffle_planes(ByteView in, MutableBytes out) {
  constexpr int kSteps = W == 2 ? 1 : W == 4 ? 2 : 3;
  const std::size_t count = in.size() / W;
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Vector vectors[W];
    for (std::size_t b = 0; b < W; ++b) std::memcpy(&vectors[b], in.data() + b * count + i, kLanes);
    rotate(vectors, kSteps);
    std::memcpy(out.data() + i * W, vectors, sizeof vectors);
  }
  for (; i < count; ++i) {
    for (std::size_t b = 0; b < W; ++b) out[i * W + b] = in[b * count + i];
  }
}

}  // namespace

void shuffle_to(ByteView in, std::size_t width, const Planes& planes) {
  switch (width) {
    case 2:
      return shuffle_planes<2>(in, planes);
    case 4:
      return shuffle_planes<4>(in, planes);
    case 8:
      return shuffle_planes<8>(in, planes);
    default:
      if (!in.empty()) std::memcpy(planes[0], in.data(), in.size());
  }
}

void shuffle(ByteView in, std::size_t width, MutableBytes out) {
  Planes planes{};
  for (std::size_t b = 0; b < width; ++b) planes[b] = out.data() + b * (in.size() / width);
  shuffle_to(in, width, planes);
}

void unshuffle(ByteView in, std::size_t width, MutableBytes out) {
  switch (width) {
    case 2:
      return unshuffle_planes<2>(in, out);
    case 4:
      return unshuffle_planes<4>(in, out);
    case 8:
      return unshuffle_planes<8>(in, out);
    default:
      if (!in.empty()) std::memcpy(out.data(), in.data(), in.size());
  }
}

}  // namespace diapause::codec
