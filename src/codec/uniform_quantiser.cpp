#include "codec/uniform_quantiser.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "codec/clones.hpp"
#include "codec/load.hpp"
#include "codec/shuffle.hpp"
#include "format/wire.hpp"

namespace diapause::codec {
namespace {

constexpr std::uint32_t kAxes = 0xf;
constexpr std::uint32_t kInterpolates = 1u << 4;
constexpr std::uint32_t kWide = 1u << 5;

// Added to a number below 2^51 in magnitude, this leaves the nearest integer in the low bits of the
// sum.
constexpr double kMagic = 0x1.8p52;
constexpr std::uint64_t kMagicBits = std::bit_cast<std::uint64_t>(kMagic);

// Quantised numbers within this limit fit in 32 bits with a sign.
constexpr double kNarrowLimit = 0x1p30;

template <class Float, class Word>
Float value_at(Word number, double step) {
  double whole;
  if constexpr (sizeof(Word) == 4) {
    whole = static_cast<std::int32_t>(number);
  } else {
    whole = std::bit_cast<double>(number + kMagicBits) - kMagic;
  }
  return static_cast<Float>(whole * step);
}

constexpr std::size_t kChunk = 128;

// The numbers whose bytes are packed together. Each run of bytes has its own frequencies, because
// data differ from place to place, and a group stays in the second-level cache.
constexpr std::uint64_t kGroup = std::uint64_t{32} * 1024;

// Returns the greatest magnitude that can be quantised: a greater value would miss the bound or
// exceed a Word.
template <class Float, class Word>
double limit_of(double bound) {
  const double limit = limit_of_bound<Float>(bound);
  return sizeof(Word) == 4 ? std::min(limit, 2 * bound * kNarrowLimit) : limit;
}

// Returns how many values are above the limit, do not come back within the bound, or are NaN.
template <class Float, class Word>
inline std::uint64_t to_numbers(const std::byte* __restrict values, std::size_t count, double bound,
                                Word* __restrict numbers) {
  const double step = 2 * bound, per_step = 1 / step, limit = limit_of<Float, Word>(bound);
  std::uint64_t missed = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<double>(load<Float>(values, i));
    const double shifted = value * per_step + kMagic;
    numbers[i] = static_cast<Word>(std::bit_cast<std::uint64_t>(shifted) - kMagicBits);
    const auto back = static_cast<double>(static_cast<Float>((shifted - kMagic) * step));
    const bool taken = (std::fabs(value - back) <= bound) & (std::fabs(value) <= limit);
    missed += taken ? 0 : 1;
  }
  return missed;
}

template <class Float, class Word>
inline void from_numbers(const Word* __restrict numbers, std::size_t count, double step,
                         std::byte* __restrict values) {
  for (std::size_t i = 0; i < count; ++i) {
    const Float value = value_at<Float>(numbers[i], step);
    std::memcpy(values + i * sizeof value, &value, sizeof value);
  }
}

// The first argument only selects the type.
DIAPAUSE_CLONES std::uint64_t quantise(float, const std::byte* values, std::size_t count,
                                       double bound, std::uint32_t* numbers) {
  return to_numbers<float>(values, count, bound, numbers);
}
DIAPAUSE_CLONES std::uint64_t quantise(double, const std::byte* values, std::size_t count,
                                       double bound, std::uint32_t* numbers) {
  return to_numbers<double>(values, count, bound, numbers);
}
DIAPAUSE_CLONES std::uint64_t quantise(double, const std::byte* values, std::size_t count,
                                       double bound, std::uint64_t* numbers) {
  return to_numbers<double>(values, count, bound, numbers);
}
DIAPAUSE_CLONES void dequantise(float, const std::uint32_t* numbers, std::size_t count, double step,
                                std::byte* values) {
  from_numbers<float>(numbers, count, step, values);
}
DIAPAUSE_CLONES void dequantise(double, const std::uint32_t* numbers, std::size_t count,
                                double step, std::byte* values) {
  from_numbers<double>(numbers, count, step, values);
}
DIAPAUSE_CLONES void dequantise(double, const std::uint64_t* numbers, std::size_t count,
                                double step, std::byte* values) {
  from_numbers<double>(numbers, count, step, values);
}

}  // namespace

Result<std::size_t> UniformQuantiser::encode(ByteView raw, const Shape& shape, const Method& method,
                                             MutableBytes out) {
  const Block block{shape.dims, shape.count(), method.bound};
  if (shape.type == format::ElementType::float32) return encode_floats<float>(raw, block, out);
  return encode_floats<double>(raw, block, out);
}

template <class Float>
Result<std::size_t> UniformQuantiser::encode_floats(ByteView raw, const Block& block,
                                                    MutableBytes out) {
  auto& outliers = std::get<Outliers<Float>>(outliers_);
  outliers.clear();
  // Most blocks have no outliers and small numbers; the others are detected early.
  if (!outliers.seem_there(raw, limit_of_bound<Float>(block.bound)) &&
      find_numbers<Float, std::uint32_t>(raw, block)) {
    return encode_numbers<Float, std::uint32_t>(raw, block, out);
  }
  filled_.resize(raw.size());
  if (!outliers.find(raw, limit_of_bound<Float>(block.bound), filled_)) {
    return fail(Code::argument, "the bound is too small for the values of the block");
  }
  if constexpr (sizeof(Float) == 8) {
    if (outliers.greatest() > limit_of<Float, std::uint32_t>(block.bound)) {
      find_numbers<Float, std::uint64_t>(filled_, block);
      return encode_numbers<Float, std::uint64_t>(raw, block, out);
    }
  }
  find_numbers<Float, std::uint32_t>(filled_, block);
  return encode_numbers<Float, std::uint32_t>(raw, block, out);
}

// Quantises the values. Those that do not come back within the bound become exceptions. Returns
// false, with the work half done, at a value that cannot be quantised.
template <class Float, class Word>
bool UniformQuantiser::find_numbers(ByteView values, const Block& block) {
  auto& words = std::get<std::vector<Word>>(words_);
  words.resize(block.count);
  const double limit = limit_of<Float, Word>(block.bound);
  for (std::uint64_t at = 0; at < block.count; at += kChunk) {
    const std::byte* const some = values.data() + at * sizeof(Float);
    const std::size_t count = std::min<std::uint64_t>(kChunk, block.count - at);
    if (quantise(Float{}, some, count, block.bound, words.data() + at) == 0) continue;
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = static_cast<double>(load<Float>(some, i));
      if (!(std::fabs(value) <= limit)) return false;
      const auto back = static_cast<double>(value_at<Float>(words[at + i], 2 * block.bound));
      if (std::fabs(value - back) > block.bound)
        std::get<Outliers<Float>>(outliers_).add(static_cast<std::uint32_t>(at + i));
    }
  }
  return true;
}

template <class Float, class Word>
std::size_t UniformQuantiser::encode_numbers(ByteView raw, const Block& block, MutableBytes out) {
  auto& words = std::get<std::vector<Word>>(words_);
  auto& transform = std::get<Transform<Word>>(transforms_);
  const Prediction prediction = transform.choose(block.dims, words);
  transform.predict(prediction, block.dims, words);

  Output output(out);
  output.u32(prediction.axes | (prediction.interpolates ? kInterpolates : 0) |
             (sizeof(Word) == 8 ? kWide : 0));
  std::get<Outliers<Float>>(outliers_).write(raw, packer_, output);
  planes_.resize(kGroup * sizeof(Word));
  for (std::uint64_t at = 0; at < block.count; at += kGroup) {
    const auto group = std::span(words).subspan(at, std::min(kGroup, block.count - at));
    fold_signs<Word>(group);
    shuffle(std::as_bytes(group), sizeof(Word), MutableBytes(planes_).first(group.size_bytes()));
    for (std::size_t plane = 0; plane < sizeof(Word); ++plane) {
      packer_.pack_entropy(ByteView(planes_).subspan(plane * group.size(), group.size()), output);
    }
  }
  return output.ok() ? output.size() : 0;
}

Status UniformQuantiser::decode(ByteView payload, const Shape& shape, double bound,
                                MutableBytes out) {
  format::Reader reader(payload);
  const std::uint32_t word = reader.u32();
  if (!reader.ok() || word >= 2 * kWide)
    return fail(Code::corrupt, "compressed block: unknown prediction");
  payload = payload.subspan(4);
  const Block block{shape.dims, shape.count(), bound};
  const Prediction prediction{word & kAxes, (word & kInterpolates) != 0};
  const bool is_double = shape.type == format::ElementType::float64;
  if ((word & kWide) == 0) {
    return is_double ? decode_numbers<double, std::uint32_t>(payload, block, prediction, out)
                     : decode_numbers<float, std::uint32_t>(payload, block, prediction, out);
  }
  if (!is_double)
    return fail(Code::corrupt, "compressed block: numbers of 8 bytes for values of 4");
  return decode_numbers<double, std::uint64_t>(payload, block, prediction, out);
}

template <class Float, class Word>
Status UniformQuantiser::decode_numbers(ByteView payload, const Block& block,
                                        const Prediction& prediction, MutableBytes out) {
  auto& outliers = std::get<Outliers<Float>>(outliers_);
  DIAPAUSE_TRY(outliers.read(payload, block.count, unpacker_));
  auto& words = std::get<std::vector<Word>>(words_);
  words.resize(block.count);
  planes_.resize(kGroup * sizeof(Word));
  for (std::uint64_t at = 0; at < block.count; at += kGroup) {
    const auto group = std::span(words).subspan(at, std::min(kGroup, block.count - at));
    for (std::size_t plane = 0; plane < sizeof(Word); ++plane) {
      DIAPAUSE_TRY(unpacker_.unpack(
          payload, MutableBytes(planes_).subspan(plane * group.size(), group.size())));
    }
    unshuffle(ByteView(planes_).first(group.size_bytes()), sizeof(Word),
              std::as_writable_bytes(group));
    unfold_signs<Word>(group);
  }
  if (!payload.empty()) return fail(Code::corrupt, "compressed block: bytes behind the last run");
  std::get<Transform<Word>>(transforms_).undo(prediction, block.dims, words);
  dequantise(Float{}, words.data(), block.count, 2 * block.bound, out.data());
  outliers.restore(out);
  return {};
}

}  // namespace diapause::codec
