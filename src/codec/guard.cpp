#include "codec/guard.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace diapause::codec {
namespace {

constexpr std::size_t kLanes = 8;

// Of kLanes pairs; what a compiler turns into vector instructions.
template <class Float, class Bits>
struct Look {
  double bound;
  double greatest[kLanes] = {};
  Bits broken[kLanes] = {};

  void at(const std::byte* raw, const std::byte* decoded) {
    Float was[kLanes], is[kLanes];
    Bits was_bits[kLanes], is_bits[kLanes];
    std::memcpy(was, raw, sizeof was);
    std::memcpy(is, decoded, sizeof is);
    std::memcpy(was_bits, raw, sizeof was);
    std::memcpy(is_bits, decoded, sizeof is);
    for (std::size_t i = 0; i < kLanes; ++i) {
      // Of two values that are no numbers, or one: no number or infinity, which is not within the bound.
      const double error = std::fabs(static_cast<double>(was[i]) - static_cast<double>(is[i]));
      const bool within = error <= bound;
      broken[i] |= within ? Bits{0} : was_bits[i] ^ is_bits[i];
      greatest[i] = within && error > greatest[i] ? error : greatest[i];
    }
  }
};

template <class Float, class Bits>
std::optional<double> look_at_all(ByteView raw, ByteView decoded, double bound) {
  Look<Float, Bits> look{bound};
  constexpr std::size_t kStep = kLanes * sizeof(Float);
  const std::size_t whole = raw.size() / kStep * kStep;
  for (std::size_t at = 0; at < whole; at += kStep) look.at(raw.data() + at, decoded.data() + at);
  std::byte last_raw[kStep] = {}, last_decoded[kStep] = {};
  if (whole < raw.size()) {
    std::memcpy(last_raw, raw.data() + whole, raw.size() - whole);
    std::memcpy(last_decoded, decoded.data() + whole, raw.size() - whole);
    look.at(last_raw, last_decoded);
  }
  if (std::any_of(std::begin(look.broken), std::end(look.broken), [](Bits bits) { return bits != 0; })) return {};
  return *std::max_element(std::begin(look.greatest), std::end(look.greatest));
}

}  // namespace

std::optional<double> greatest_error(ByteView raw, ByteView decoded, const Shape& shape, double bound) {
  if (shape.type == format::ElementType::float32) return look_at_all<float, std::uint32_t>(raw, decoded, bound);
  return look_at_all<double, std::uint64_t>(raw, decoded, bound);
}

}  // namespace diapause::codec
