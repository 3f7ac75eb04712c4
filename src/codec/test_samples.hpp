// Blocks of many kinds for the tests of this folder: data that solvers make, and data that break
// codecs.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "codec/block.hpp"

namespace diapause::codec::test {

enum class Kind {
  smooth,
  rough,
  steps,
  constant,
  noise,
  zeros,
  fill,
  not_finite,
  denormal,
  huge,
  mixed
};
inline constexpr Kind kKinds[] = {Kind::smooth,     Kind::rough,    Kind::steps, Kind::constant,
                                  Kind::noise,      Kind::zeros,    Kind::fill,  Kind::mixed,
                                  Kind::not_finite, Kind::denormal, Kind::huge};

// Returns element `i` of a field whose last dimension has `row` elements.
template <class Float>
Float value_of(Kind kind, std::uint64_t i, std::uint64_t row, std::mt19937& random) {
  using Limits = std::numeric_limits<Float>;
  const auto x = static_cast<double>(i % row), y = static_cast<double>(i / row);
  const double smooth = 300 + 20 * std::sin(0.05 * x) * std::cos(0.02 * y);
  const double chance = std::uniform_real_distribution<double>(-1, 1)(random);
  switch (kind) {
    case Kind::smooth:
      return static_cast<Float>(smooth);
    case Kind::rough:
      return static_cast<Float>(smooth + chance);
    case Kind::steps:
      return static_cast<Float>(std::floor(smooth / 10));
    case Kind::constant:
      return static_cast<Float>(273.15);
    case Kind::noise:
      return static_cast<Float>(std::ldexp(chance, static_cast<int>(random() % 40)));
    case Kind::zeros:
      return chance > 0.99 ? static_cast<Float>(smooth) : Float{0};
    case Kind::fill:
      return i / 50 % 3 == 0 ? static_cast<Float>(-1e34) : static_cast<Float>(smooth);
    case Kind::not_finite:
      if (chance > 0.9) return chance > 0.95 ? Limits::infinity() : -Limits::infinity();
      return chance < -0.9 ? Limits::quiet_NaN() : static_cast<Float>(smooth);
    case Kind::denormal:
      return static_cast<Float>(chance) * Limits::min();
    case Kind::huge:
      return static_cast<Float>(chance) * Limits::max();
    case Kind::mixed:
      return value_of<Float>(kKinds[random() % 3 + 8], i, row, random);
  }
  return 0;
}

template <class Float>
ByteVector floats_of(Kind kind, const Shape& shape, std::uint32_t seed) {
  std::mt19937 random(seed);
  ByteVector bytes(shape.bytes());
  for (std::uint64_t i = 0; i < shape.count(); ++i) {
    const Float value = value_of<Float>(kind, i, shape.dims.back(), random);
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
  return bytes;
}

// Returns the bytes of a block. Types that are not floating-point get the bytes of doubles.
inline ByteVector data_of(Kind kind, const Shape& shape, std::uint32_t seed = 1) {
  if (shape.type == format::ElementType::float32) return floats_of<float>(kind, shape, seed);
  const Shape doubles{format::ElementType::float64, {1, 1, 1, shape.bytes() / sizeof(double) + 1}};
  if (shape.type != format::ElementType::float64) {
    ByteVector bytes = floats_of<double>(kind, doubles, seed);
    bytes.resize(shape.bytes());
    return bytes;
  }
  return floats_of<double>(kind, shape, seed);
}

}  // namespace diapause::codec::test
