#include "codec/guard.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <numeric>

#include "codec/clones.hpp"

namespace diapause::codec {
namespace {

constexpr std::size_t kLanes = 8;
constexpr std::size_t kChunk = 512;

// Of two values that are no numbers, or one: no number or infinity, which no bound is above.
template <class Float>
inline double error_of(Float was, Float is) {
  return std::fabs(static_cast<double>(was) - static_cast<double>(is));
}

// Whether all errors are within the bound; side by side, so that it is done with vectors.
template <class Float>
inline bool look_at_chunk(const Float* was, const Float* is, double bound, double& greatest) {
  double most[kLanes] = {}, beyond[kLanes] = {};
  for (std::size_t i = 0; i < kChunk; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double error = error_of(was[i + lane], is[i + lane]);
      most[lane] = error > most[lane] ? error : most[lane];
      beyond[lane] += error <= bound ? 0.0 : 1.0;
    }
  }
  if (std::accumulate(std::begin(beyond), std::end(beyond), 0.0) > 0) return false;
  greatest = std::max(greatest, *std::max_element(std::begin(most), std::end(most)));
  return true;
}

template <class Float, class Bits>
inline bool look_at_each(const Float* was, const Float* is, double bound, double& greatest) {
  for (std::size_t i = 0; i < kChunk; ++i) {
    const double error = error_of(was[i], is[i]);
    if (error <= bound) {
      greatest = std::max(greatest, error);
    } else if (std::bit_cast<Bits>(was[i]) != std::bit_cast<Bits>(is[i])) {
      return false;
    }
  }
  return true;
}

template <class Float, class Bits>
inline bool look_at_all(ByteView raw, ByteView decoded, double bound, double& greatest) {
  for (std::size_t at = 0; at < raw.size(); at += kChunk * sizeof(Float)) {
    const std::size_t bytes = std::min(kChunk * sizeof(Float), raw.size() - at);
    Float was[kChunk] = {}, is[kChunk] = {};
    std::memcpy(was, raw.data() + at, bytes);
    std::memcpy(is, decoded.data() + at, bytes);
    if (look_at_chunk(was, is, bound, greatest)) continue;
    if (!look_at_each<Float, Bits>(was, is, bound, greatest)) return false;
  }
  return true;
}

DIAPAUSE_CLONES bool look_at_floats(ByteView raw, ByteView decoded, double bound, double& greatest) {
  return look_at_all<float, std::uint32_t>(raw, decoded, bound, greatest);
}

DIAPAUSE_CLONES bool look_at_doubles(ByteView raw, ByteView decoded, double bound, double& greatest) {
  return look_at_all<double, std::uint64_t>(raw, decoded, bound, greatest);
}

}  // namespace

std::optional<double> greatest_error(ByteView raw, ByteView decoded, const Shape& shape, double bound) {
  const auto look_at = shape.type == format::ElementType::float32 ? look_at_floats : look_at_doubles;
  double greatest = 0;
  if (!look_at(raw, decoded, bound, greatest)) return {};
  return greatest;
}

}  // namespace diapause::codec
