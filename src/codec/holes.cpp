#include "codec/holes.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "format/wire.hpp"

namespace diapause::codec {
namespace {

constexpr std::uint64_t kMostExceptions = 8;  // one in so many
constexpr std::uint64_t kLeastFill = 64;      // a fill value is at least one in so many
constexpr std::uint64_t kSamples = 128;
constexpr std::uint64_t kLeastFound = 4;  // of these, that are followed by themselves

template <class T>
T load(ByteView values, std::uint64_t index) {
  T value;
  std::memcpy(&value, values.data() + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(MutableBytes values, std::uint64_t index, T value) {
  std::memcpy(values.data() + index * sizeof(T), &value, sizeof(T));
}

// What a scan sees of values, a few side by side so that it is done with vectors.
template <class Float>
struct Extent {
  double least = std::numeric_limits<double>::infinity(), greatest = -least;
  std::uint64_t unsound = 0;  // beyond the limit, or no number

  double magnitude() const { return std::max({0.0, -least, greatest}); }
};

template <class Float>
Extent<Float> extent_of(ByteView values, double limit) {
  constexpr std::size_t kLanes = 8;
  const std::uint64_t count = values.size() / sizeof(Float);
  double least[kLanes], greatest[kLanes], unsound[kLanes] = {};
  std::fill_n(least, kLanes, std::numeric_limits<double>::infinity());
  std::fill_n(greatest, kLanes, -std::numeric_limits<double>::infinity());
  const auto look = [&](std::size_t lane, Float value) {
    const double x = static_cast<double>(value);
    const bool sound = std::fabs(x) <= limit;
    least[lane] = sound && x < least[lane] ? x : least[lane];
    greatest[lane] = sound && x > greatest[lane] ? x : greatest[lane];
    unsound[lane] += sound ? 0.0 : 1.0;
  };
  std::uint64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Float some[kLanes];
    std::memcpy(some, values.data() + i * sizeof(Float), sizeof some);
    for (std::size_t lane = 0; lane < kLanes; ++lane) look(lane, some[lane]);
  }
  for (; i < count; ++i) look(0, load<Float>(values, i));
  Extent<Float> extent;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    extent.least = std::min(extent.least, least[lane]);
    extent.greatest = std::max(extent.greatest, greatest[lane]);
    extent.unsound += static_cast<std::uint64_t>(unsound[lane]);
  }
  return extent;
}

// The value that most of those that are offered have, if most of them have the same.
template <class Bits>
class Majority {
 public:
  void offer(Bits bits) {
    if (votes_ == 0) bits_ = bits;
    votes_ += bits == bits_ ? 1 : -1;
  }
  std::optional<Bits> winner() const { return votes_ > 0 ? std::optional(bits_) : std::nullopt; }

 private:
  Bits bits_ = 0;
  std::int64_t votes_ = 0;
};

// Whether all other sound values lie closer together than to this one.
template <class Float>
class Distance {
 public:
  explicit Distance(Float from) : from_(from) {}
  void look(Float value) {
    if (value == from_) return;
    least_ = std::min<double>(least_, value);
    greatest_ = std::max<double>(greatest_, value);
  }
  bool is_far() const {
    const double range = greatest_ - least_;
    return range >= 0 && (from_ < least_ - range || from_ > greatest_ + range);
  }

 private:
  double from_;
  double least_ = std::numeric_limits<double>::infinity(), greatest_ = -least_;
};

// A value that is often followed by itself and, as far as a sample tells, far from the others.
template <class Float, class Bits>
std::optional<Bits> repeated_value(ByteView values) {
  const std::uint64_t count = values.size() / sizeof(Bits);
  if (count < 2 * kSamples) return {};
  const std::uint64_t apart = (count - 1) / kSamples;
  Majority<Bits> majority;
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    const Bits bits = load<Bits>(values, apart * i);
    if (bits != load<Bits>(values, apart * i + 1)) continue;
    majority.offer(bits);
    ++found;
  }
  if (found < kLeastFound || !majority.winner()) return {};
  Distance<Float> distance(std::bit_cast<Float>(*majority.winner()));
  for (std::uint64_t i = 0; i < kSamples; ++i) distance.look(load<Float>(values, apart * i));
  return distance.is_far() ? majority.winner() : std::nullopt;
}

template <class Float, class Bits>
std::optional<Bits> unsound_value(ByteView values, double limit) {
  const std::uint64_t count = values.size() / sizeof(Float);
  Majority<Bits> majority;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!(std::fabs(static_cast<double>(load<Float>(values, i))) <= limit)) majority.offer(load<Bits>(values, i));
  }
  return majority.winner();
}

template <class Float, class Bits>
bool is_far(Bits candidate, ByteView values) {
  Distance<Float> distance(std::bit_cast<Float>(candidate));
  const std::uint64_t count = values.size() / sizeof(Float);
  for (std::uint64_t i = 0; i < count; ++i) distance.look(load<Float>(values, i));
  return distance.is_far();
}

}  // namespace

template <class Float>
void Holes<Float>::clear() {
  has_fill_ = false;
  indices_.clear();
}

template <class Float>
bool Holes<Float>::seem_there(ByteView values) const {
  return repeated_value<Float, Bits>(values).has_value();
}

template <class Float>
bool Holes<Float>::find(ByteView values, double limit) {
  clear();
  const Extent<Float> extent = extent_of<Float>(values, limit);
  greatest_ = extent.magnitude();
  const std::optional<Bits> candidate =
      extent.unsound > 0 ? unsound_value<Float, Bits>(values, limit) : repeated_value<Float, Bits>(values);
  if (extent.unsound == 0 && !(candidate && is_far<Float, Bits>(*candidate, values))) return true;

  const std::uint64_t count = values.size() / sizeof(Float);
  std::uint64_t filled = 0;
  if (candidate) {
    for (std::uint64_t i = 0; i < count; ++i) filled += load<Bits>(values, i) == *candidate;
  }
  has_fill_ = filled * kLeastFill >= count;
  fill_ = candidate.value_or(0);
  mask_.assign(has_fill_ ? (count + 7) / 8 : 0, std::byte{0});
  greatest_ = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto magnitude = std::fabs(static_cast<double>(load<Float>(values, i)));
    if (has_fill_ && load<Bits>(values, i) == fill_) {
      mask_[i / 8] |= std::byte{1} << i % 8;
    } else if (magnitude <= limit) {
      greatest_ = std::max(greatest_, magnitude);
    } else {
      if (indices_.size() == count / kMostExceptions) return false;
      indices_.push_back(static_cast<std::uint32_t>(i));
    }
  }
  return true;
}

template <class Float>
void Holes<Float>::fill(ByteView values, MutableBytes out) const {
  const std::uint64_t count = values.size() / sizeof(Float);
  Float sound = 0;
  auto exception = indices_.begin();
  for (std::uint64_t i = 0; i < count; ++i) {
    const bool excepted = exception != indices_.end() && *exception == i;
    exception += excepted;
    if (!excepted && !(has_fill_ && load<Bits>(values, i) == fill_)) sound = load<Float>(values, i);
    store(out, i, sound);
  }
}

template <class Float>
void Holes<Float>::write(ByteView values, Packer& packer, Output& out) {
  out.u32(has_fill_ ? 1 : 0);
  if (has_fill_) {
    out.u64(fill_);
    packer.pack_zstd(mask_, 1, out);
  }
  out.u32(static_cast<std::uint32_t>(indices_.size()));
  if (indices_.empty()) return;
  exceptions_.clear();
  for (const std::uint32_t index : indices_) exceptions_.push_back(load<Bits>(values, index));
  packer.pack_zstd(std::as_bytes(std::span(indices_)), 1, out);
  packer.pack_zstd(std::as_bytes(std::span(exceptions_)), 1, out);
}

template <class Float>
Status Holes<Float>::read(ByteView& in, std::uint64_t count, Unpacker& unpacker) {
  const auto number = [&in](std::size_t size) {
    format::Reader reader(in);
    const std::uint64_t value = size == 4 ? reader.u32() : reader.u64();
    in = in.subspan(std::min(in.size(), size));
    return value;
  };
  const std::uint64_t has_fill = number(4);
  if (has_fill > 1) return fail(Code::corrupt, "compressed block: unknown kind of holes");
  has_fill_ = has_fill == 1;
  if (has_fill_) {
    fill_ = static_cast<Bits>(number(8));
    mask_.resize((count + 7) / 8);
    DIAPAUSE_TRY(unpacker.unpack(in, mask_));
  }
  const std::uint64_t exceptions = number(4);
  if (exceptions > count) return fail(Code::corrupt, "compressed block: more exceptions than values");
  indices_.resize(exceptions);
  exceptions_.resize(exceptions);
  if (exceptions == 0) return {};
  DIAPAUSE_TRY(unpacker.unpack(in, std::as_writable_bytes(std::span(indices_))));
  DIAPAUSE_TRY(unpacker.unpack(in, std::as_writable_bytes(std::span(exceptions_))));
  if (*std::ranges::max_element(indices_) >= count) {
    return fail(Code::corrupt, "compressed block: an exception lies outside");
  }
  return {};
}

template <class Float>
void Holes<Float>::restore(MutableBytes values) const {
  if (has_fill_) {
    const std::uint64_t count = values.size() / sizeof(Float);
    for (std::uint64_t i = 0; i < count; ++i) {
      if ((mask_[i / 8] >> i % 8 & std::byte{1}) != std::byte{0}) store(values, i, fill_);
    }
  }
  for (std::size_t i = 0; i < indices_.size(); ++i) store(values, indices_[i], exceptions_[i]);
}

template class Holes<float>;
template class Holes<double>;

}  // namespace diapause::codec
