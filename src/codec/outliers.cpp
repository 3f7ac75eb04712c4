#include "codec/outliers.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>

#include "codec/clones.hpp"
#include "codec/load.hpp"
#include "format/wire.hpp"

namespace diapause::codec {
namespace {

constexpr std::uint64_t kMostExceptions = 8;  // at most one exception in so many values
constexpr std::uint64_t kLeastFill = 64;      // a fill value occurs at least once in so many values
constexpr std::uint64_t kSamples = 128;
constexpr std::uint64_t kFillSamples = 4096;
// So many of these samples have to be followed by an equal value.
constexpr std::uint64_t kLeastFound = 4;

template <class T>
void store(MutableBytes values, std::uint64_t index, T value) {
  std::memcpy(values.data() + index * sizeof(T), &value, sizeof(T));
}

// Finds the value that the majority of the offered values have, if there is a majority.
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

// Determines whether all other sound values are closer together than to this one. For an unsound
// value that is always so.
template <class Float>
class Distance {
 public:
  Distance(Float from, double limit) : from_(from), limit_(limit) {}
  void look(Float value) {
    const auto x = static_cast<double>(value);
    if (x == from_ || !(std::fabs(x) <= limit_)) return;
    least_ = x < least_ ? x : least_;
    greatest_ = x > greatest_ ? x : greatest_;
  }
  bool is_far() const {
    const double range = greatest_ - least_;
    if (!(std::fabs(from_) <= limit_)) return true;
    return range >= 0 && (from_ < least_ - range || from_ > greatest_ + range);
  }

 private:
  double from_, limit_;
  double least_ = std::numeric_limits<double>::infinity(), greatest_ = -least_;
};

// Returns a value that is often followed by itself and is, as far as a sample tells, far from the
// other values.
template <class Float, class Bits>
std::optional<Bits> repeated_value(ByteView values, double limit) {
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
  Distance<Float> distance(std::bit_cast<Float>(*majority.winner()), limit);
  for (std::uint64_t i = 0; i < kSamples; ++i) distance.look(load<Float>(values, apart * i));
  return distance.is_far() ? majority.winner() : std::nullopt;
}

// Returns the value that most of the unsound values have.
template <class Float, class Bits>
std::optional<Bits> unsound_value(ByteView values, double limit) {
  Majority<Bits> majority;
  for (std::uint64_t i = 0; i < values.size() / sizeof(Float); ++i) {
    if (!(std::fabs(static_cast<double>(load<Float>(values, i))) <= limit))
      majority.offer(load<Bits>(values, i));
  }
  return majority.winner();
}

// Returns whether a sample of some thousand values suggests that `candidate` is a fill value. A
// wrong answer costs only space.
template <class Float, class Bits>
bool is_fill(Bits candidate, ByteView values, double limit) {
  Distance<Float> distance(std::bit_cast<Float>(candidate), limit);
  const std::uint64_t count = values.size() / sizeof(Float);
  // The distance is odd, so that rows whose length is a power of two are sampled at every column.
  const std::uint64_t apart = count / kFillSamples | 1;
  std::uint64_t found = 0, seen = 0;
  for (std::uint64_t i = 0; i < count; i += apart, ++seen) {
    found += load<Bits>(values, i) == candidate;
    distance.look(load<Float>(values, i));
  }
  return found * kLeastFill >= seen && distance.is_far();
}

constexpr std::size_t kRun = 64;  // values that mostly are of one kind
constexpr std::size_t kLanes = 8;

struct Kinds {
  std::size_t fill = 0, sound = 0;  // numbers of values of a run
  double greatest = 0;              // greatest magnitude of the sound values
};

template <class Float, class Bits>
inline Kinds kinds_of(const std::byte* run, bool has_fill, Bits fill, double limit) {
  Float values[kRun];
  Bits bits[kRun];
  std::memcpy(values, run, sizeof values);
  std::memcpy(bits, run, sizeof bits);
  Kinds kinds;
  double greatest[kLanes] = {};
  for (std::size_t i = 0; i < kRun; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto magnitude = std::fabs(static_cast<double>(values[i + lane]));
      const bool is_fill = has_fill & (bits[i + lane] == fill);
      const bool is_sound = !is_fill & (magnitude <= limit);
      kinds.fill += is_fill ? 1 : 0;
      kinds.sound += is_sound ? 1 : 0;
      greatest[lane] = (is_sound & (magnitude > greatest[lane])) ? magnitude : greatest[lane];
    }
  }
  kinds.greatest = *std::max_element(std::begin(greatest), std::end(greatest));
  return kinds;
}

DIAPAUSE_CLONES Kinds look_at_run(const std::byte* run, bool has_fill, std::uint32_t fill,
                                  double limit) {
  return kinds_of<float>(run, has_fill, fill, limit);
}
DIAPAUSE_CLONES Kinds look_at_run(const std::byte* run, bool has_fill, std::uint64_t fill,
                                  double limit) {
  return kinds_of<double>(run, has_fill, fill, limit);
}

}  // namespace

template <class Float>
auto Outliers<Float>::fill_value(ByteView values, double limit) -> std::optional<Bits> {
  std::optional<Bits> candidate = repeated_value<Float, Bits>(values, limit);
  if (!candidate) candidate = unsound_value<Float, Bits>(values, limit);
  return candidate && is_fill<Float, Bits>(*candidate, values, limit) ? candidate : std::nullopt;
}

template <class Float>
void Outliers<Float>::clear() {
  has_fill_ = false;
  indices_.clear();
}

template <class Float>
bool Outliers<Float>::seem_there(ByteView values, double limit) const {
  return repeated_value<Float, Bits>(values, limit).has_value();
}

template <class Float>
bool Outliers<Float>::find(ByteView values, double limit, MutableBytes out) {
  clear();
  const std::optional<Bits> fill = fill_value(values, limit);
  has_fill_ = fill.has_value();
  fill_ = fill.value_or(0);
  const std::uint64_t count = values.size() / sizeof(Float);
  mask_.assign(has_fill_ ? (count + 7) / 8 : 0, std::byte{0});
  greatest_ = 0;
  Float last = 0;
  const auto take_each = [&](std::uint64_t at, std::uint64_t end) {
    for (std::uint64_t i = at; i < end; ++i) {
      const Float value = load<Float>(values, i);
      const auto magnitude = std::fabs(static_cast<double>(value));
      if (has_fill_ && load<Bits>(values, i) == fill_) {
        mask_[i / 8] |= std::byte{1} << i % 8;
      } else if (magnitude <= limit) {
        greatest_ = std::max(greatest_, magnitude);
        last = value;
      } else {
        if (indices_.size() == count / kMostExceptions) return false;
        indices_.push_back(static_cast<std::uint32_t>(i));
      }
      store(out, i, last);
    }
    return true;
  };
  for (std::uint64_t at = 0; at < count; at += kRun) {
    const std::uint64_t end = std::min(count, at + kRun);
    const std::byte* const run = values.data() + at * sizeof(Float);
    const Kinds kinds = end - at == kRun ? look_at_run(run, has_fill_, fill_, limit) : Kinds{};
    if (kinds.sound == kRun) {
      std::memcpy(out.data() + at * sizeof(Float), run, kRun * sizeof(Float));
      greatest_ = std::max(greatest_, kinds.greatest);
      last = load<Float>(values, end - 1);
    } else if (kinds.fill == kRun) {
      std::fill_n(mask_.begin() + static_cast<std::ptrdiff_t>(at / 8), kRun / 8, std::byte{0xff});
      for (std::uint64_t i = at; i < end; ++i) store(out, i, last);
    } else if (!take_each(at, end)) {
      return false;
    }
  }
  return true;
}

template <class Float>
void Outliers<Float>::write(ByteView values, Packer& packer, Output& out) {
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
Status Outliers<Float>::read(ByteView& in, std::uint64_t count, Unpacker& unpacker) {
  const auto number = [&in](std::size_t size) {
    format::Reader reader(in);
    const std::uint64_t value = size == 4 ? reader.u32() : reader.u64();
    in = in.subspan(std::min(in.size(), size));
    return value;
  };
  const std::uint64_t has_fill = number(4);
  if (has_fill > 1) return fail(Code::corrupt, "compressed block: unknown kind of outliers");
  has_fill_ = has_fill == 1;
  if (has_fill_) {
    fill_ = static_cast<Bits>(number(8));
    mask_.resize((count + 7) / 8);
    DIAPAUSE_TRY(unpacker.unpack(in, mask_));
  }
  const std::uint64_t exceptions = number(4);
  if (exceptions > count)
    return fail(Code::corrupt, "compressed block: more exceptions than values");
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
void Outliers<Float>::restore(MutableBytes values) const {
  const std::uint64_t count = values.size() / sizeof(Float);
  for (std::uint64_t at = 0; has_fill_ && at < count; at += 8) {
    if (mask_[at / 8] == std::byte{0}) continue;
    for (std::uint64_t i = at; i < std::min(count, at + 8); ++i) {
      if ((mask_[at / 8] >> i % 8 & std::byte{1}) != std::byte{0}) store(values, i, fill_);
    }
  }
  for (std::size_t i = 0; i < indices_.size(); ++i) store(values, indices_[i], exceptions_[i]);
}

template class Outliers<float>;
template class Outliers<double>;

}  // namespace diapause::codec
