#include "codec/guard.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "codec/clones.hpp"
#include "codec/load.hpp"

namespace diapause::codec {
namespace {

constexpr std::size_t kChunk = 512;

// Returns the error. If a value is NaN, the error is NaN or infinite, which no bound allows.
template <class Float>
inline double error_of(Float was, Float is) {
  return std::fabs(static_cast<double>(was) - static_cast<double>(is));
}

// Returns whether all errors of a chunk are within the bound. The bits of non-negative numbers are
// ordered like the numbers, and the bits of NaN are above all of them, so one maximum over
// integers, which a compiler can vectorize, finds both the greatest error and any NaN.
template <class Float>
inline bool look_at_chunk(const std::byte* was, const std::byte* is, double bound,
                          double& greatest) {
  std::int64_t most = 0;
  for (std::size_t i = 0; i < kChunk; ++i) {
    most = std::max(most,
                    std::bit_cast<std::int64_t>(error_of(load<Float>(was, i), load<Float>(is, i))));
  }
  if (most > std::bit_cast<std::int64_t>(bound)) return false;
  greatest = std::max(greatest, std::bit_cast<double>(most));
  return true;
}

template <class Float, class Bits>
inline bool look_at_each(const std::byte* was, const std::byte* is, std::size_t count, double bound,
                         double& greatest) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto before = load<Float>(was, i), after = load<Float>(is, i);
    const double error = error_of(before, after);
    if (error <= bound) {
      greatest = std::max(greatest, error);
    } else if (std::bit_cast<Bits>(before) != std::bit_cast<Bits>(after)) {
      return false;
    }
  }
  return true;
}

template <class Float, class Bits>
inline bool look_at_all(ByteView raw, ByteView decoded, double bound, double& greatest) {
  const std::size_t count = raw.size() / sizeof(Float);
  for (std::size_t at = 0; at < count; at += kChunk) {
    const std::byte* const was = raw.data() + at * sizeof(Float);
    const std::byte* const is = decoded.data() + at * sizeof(Float);
    const std::size_t some = std::min(kChunk, count - at);
    if (some == kChunk && look_at_chunk<Float>(was, is, bound, greatest)) continue;
    if (!look_at_each<Float, Bits>(was, is, some, bound, greatest)) return false;
  }
  return true;
}

DIAPAUSE_CLONES bool look_at_floats(ByteView raw, ByteView decoded, double bound,
                                    double& greatest) {
  return look_at_all<float, std::uint32_t>(raw, decoded, bound, greatest);
}

DIAPAUSE_CLONES bool look_at_doubles(ByteView raw, ByteView decoded, double bound,
                                     double& greatest) {
  return look_at_all<double, std::uint64_t>(raw, decoded, bound, greatest);
}

}  // namespace

std::optional<double> greatest_error(ByteView raw, ByteView decoded, const Shape& shape,
                                     double bound) {
  const auto look_at =
      shape.type == format::ElementType::float32 ? look_at_floats : look_at_doubles;
  double greatest = 0;
  if (!look_at(raw, decoded, bound, greatest)) return {};
  return greatest;
}

}  // namespace diapause::codec
