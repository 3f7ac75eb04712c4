#include "codec/resolution.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "codec/load.hpp"
#include "codec/outliers.hpp"

namespace diapause::codec {
namespace {

struct Finite {
  double greatest = 0;  // greatest magnitude
  std::uint64_t count = 0;
};

template <class Float>
Finite finite_values(ByteView values, std::optional<typename Outliers<Float>::Bits> but) {
  Finite finite;
  for (std::size_t i = 0; i < values.size() / sizeof(Float); ++i) {
    const auto value = load<Float>(values, i);
    if (!std::isfinite(value) || load<typename Outliers<Float>::Bits>(values, i) == but) continue;
    finite.greatest = std::max(finite.greatest, std::fabs(static_cast<double>(value)));
    ++finite.count;
  }
  return finite;
}

template <class Float>
Status check(double bound, ByteView values) {
  const double limit = limit_of_bound<Float>(bound);
  Finite finite = finite_values<Float>(values, {});
  if (finite.greatest <= limit) return {};
  // A value that occurs in many places beside others does not count. A field that is the same
  // everywhere does.
  const Finite others = finite_values<Float>(values, Outliers<Float>::fill_value(values, limit));
  if (others.count > 0 && others.count + 1 < finite.count) finite = others;
  if (finite.greatest <= limit) return {};
  // The two differ by a power of two, so this is exact.
  const double least = finite.greatest * (bound / limit);
  return fail(
      Code::argument,
      fmt::format("the bound {} is below four units in the last place of its largest value, {}; "
                  "the least bound for that is {}",
                  bound, finite.greatest, least));
}

}  // namespace

Status check_resolution(const Method& method, format::ElementType type, ByteView values) {
  return type == format::ElementType::float32 ? check<float>(method.bound, values)
                                              : check<double>(method.bound, values);
}

}  // namespace diapause::codec
