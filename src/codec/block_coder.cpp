#include "codec/block_coder.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "codec/guard.hpp"
#include "format/checksum.hpp"

namespace diapause::codec {
namespace {

constexpr int kLeastLevel = -50;
constexpr int kMostLevel = 19;
constexpr std::uint64_t kSampleElements = 4096;
// So many bytes are compared and then hashed while they are in the cache.
constexpr std::size_t kGuardPassBytes = std::size_t{32} * 1024;

// Returns the result of `action`, or an error for an exception. Exceptions must end here because
// the caller may be any thread.
template <class Action>
auto contained(Action action) -> decltype(action()) {
  try {
    return action();
  } catch (const std::bad_alloc&) {
    return fail(Code::memory, "no memory to compress or decompress a block");
  } catch (const std::exception& error) {
    return fail(Code::internal, fmt::format("compression: {}", error.what()));
  }
}

}  // namespace

Status check_method(const Method& method, format::ElementType type) {
  if (method.codec == CodecId::shuffle_zstd &&
      (method.level < kLeastLevel || method.level > kMostLevel)) {
    return fail(Code::argument, fmt::format("level {} of zstd: {} to {} is possible", method.level,
                                            kLeastLevel, kMostLevel));
  }
  if (!is_lossy(method.codec)) return {};
  if (!Shape{type}.is_floating()) {
    return fail(
        Code::argument,
        fmt::format("codec {} changes values, which {} elements must keep: only float32 and "
                    "float64 can be encoded with it",
                    codec_name(method.codec), format::element_type_name(type)));
  }
  if (!std::isnormal(method.bound) || method.bound < 0) {
    return fail(Code::argument,
                fmt::format("error bound {}: it must be a positive number that is not denormal",
                            method.bound));
  }
  return {};
}

Result<BlockEncoder> BlockEncoder::create(const Method& method) {
  BlockEncoder encoder(method);
  const bool lossy = is_lossy(method.codec);
  if (lossy) {
    DIAPAUSE_TRY_ASSIGN(encoder.lossy_, make_codec(method.codec));
  }
  if (method.codec != CodecId::raw) {
    encoder.lossless_.emplace(lossy ? CodecId::shuffle_lz4 : method.codec);
  }
  return encoder;
}

Result<BlockReport> BlockEncoder::encode(ByteView raw, const Shape& shape) {
  if (raw.empty() || raw.size() != shape.bytes() || raw.size() > kMaxBlockBytes) {
    return fail(Code::internal, fmt::format("a block of {} bytes cannot be encoded", raw.size()));
  }
  return contained([&]() -> Result<BlockReport> { return encode_or_throw(raw, shape); });
}

BlockReport BlockEncoder::encode_or_throw(ByteView raw, const Shape& shape) {
  block_.resize(std::max(block_.size(), kBlockHeaderBytes + raw.size()));
  header_ = {};
  header_.payload_bytes = raw.size();
  greatest_error_ = 0;
  Fallback fallback = lossy_ ? try_lossy(raw, shape) : Fallback::none;
  if (header_.codec == CodecId::raw) {
    try_lossless(raw, shape);
  } else if (may_be_smaller_without_loss(raw, shape)) {
    try_lossless(raw, shape);
    if (!is_lossy(header_.codec)) fallback = Fallback::smaller;
  }
  if (header_.codec == CodecId::raw) store_raw(raw);
  header_.shape = shape;
  header_.payload_checksum =
      header_.codec == CodecId::raw
          ? header_.decoded_checksum
          : format::checksum64(payload_of(block_).first(header_.payload_bytes));
  const ByteVector header = encode_block_header(header_);
  std::memcpy(block_.data(), header.data(), header.size());
  return {header_.codec, fallback, raw.size(), block().size(), greatest_error_};
}

// Tries the lossy codec. Leaves a verified payload in block_ and its description in header_, or
// returns why it did not.
Fallback BlockEncoder::try_lossy(ByteView raw, const Shape& shape) {
  const MutableBytes payload = payload_of(block_).first(raw.size() - 1);
  const auto written = lossy_->encode(raw, shape, method_, payload);
  if (!written)
    return written.error().code == Code::argument ? Fallback::bound_too_small : Fallback::guard;
  if (*written == 0) return Fallback::smaller;
  other_.resize(block_.size());
  const MutableBytes decoded = MutableBytes(other_).first(raw.size());
  if (!lossy_->decode(payload.first(*written), shape, method_.bound, decoded))
    return Fallback::guard;
  format::Checksum64 sum;
  double greatest = 0;
  for (std::size_t at = 0; at < raw.size(); at += kGuardPassBytes) {
    const std::size_t bytes = std::min(kGuardPassBytes, raw.size() - at);
    const auto error =
        greatest_error(raw.subspan(at, bytes), decoded.subspan(at, bytes), shape, method_.bound);
    if (!error) return Fallback::guard;
    greatest = std::max(greatest, *error);
    sum.update(decoded.subspan(at, bytes));
  }
  header_.codec = lossy_->id();
  header_.codec_version = lossy_->version();
  header_.arithmetic = kStrictArithmetic;
  header_.bound = method_.bound;
  header_.payload_bytes = *written;
  header_.decoded_checksum = sum.value();
  greatest_error_ = greatest;
  return Fallback::none;
}

// Returns whether a sample becomes smaller without loss. Encoding everything twice would cost as
// much as the lossy codec does.
bool BlockEncoder::may_be_smaller_without_loss(ByteView raw, const Shape& shape) {
  Shape sample = shape;
  sample.dims = {1, 1, 1, std::min(shape.count(), kSampleElements)};
  const std::uint64_t at = (shape.count() - sample.count()) / 2 * shape.element_bytes();
  const auto written = lossless_->encode(raw.subspan(at, sample.bytes()), sample, method_, other_);
  const double lossy_part =
      static_cast<double>(header_.payload_bytes) / static_cast<double>(raw.size());
  return written && *written > 0 &&
         static_cast<double>(*written) < lossy_part * static_cast<double>(sample.bytes());
}

// Encodes without loss, and keeps the result if it is smaller than the present one.
void BlockEncoder::try_lossless(ByteView raw, const Shape& shape) {
  if (!lossless_) return;
  ByteVector& place = header_.codec == CodecId::raw ? block_ : other_;
  place.resize(block_.size());
  const auto written =
      lossless_->encode(raw, shape, method_, payload_of(place).first(header_.payload_bytes - 1));
  if (!written || *written == 0) return;
  if (header_.codec != CodecId::raw) std::swap(block_, other_);
  header_ = {};
  header_.codec = lossless_->id();
  header_.codec_version = lossless_->version();
  header_.payload_bytes = *written;
  header_.decoded_checksum = lossless_->raw_checksum();
  greatest_error_ = 0;
}

void BlockEncoder::store_raw(ByteView raw) {
  std::memcpy(payload_of(block_).data(), raw.data(), raw.size());
  header_.decoded_checksum = format::checksum64(raw);
}

Result<Codec*> BlockDecoder::codec_of(const BlockHeader& header) {
  const auto number = static_cast<std::size_t>(header.codec);
  if (number >= codecs_.size()) {
    return fail(Code::mismatch,
                fmt::format("compressed block: codec {} is unknown to this build", number));
  }
  if (!codecs_[number]) {
    DIAPAUSE_TRY_ASSIGN(codecs_[number], make_codec(header.codec));
  }
  if (codecs_[number]->version() != header.codec_version) {
    return fail(
        Code::mismatch,
        fmt::format("compressed block: version {:#x} of codec {}; this build has {:#x}",
                    header.codec_version, codec_name(header.codec), codecs_[number]->version()));
  }
  return codecs_[number].get();
}

Status BlockDecoder::decode(ByteView data, const Shape& expected, MutableBytes out) {
  return contained([&] { return decode_or_throw(data, expected, out); });
}

Status BlockDecoder::decode_or_throw(ByteView data, const Shape& expected, MutableBytes out) {
  DIAPAUSE_TRY_ASSIGN(const BlockHeader header, decode_block_header(data));
  if (header.shape != expected || out.size() != expected.bytes()) {
    return fail(Code::corrupt, "compressed block: it has another shape than the region");
  }
  const ByteView behind = data.subspan(kBlockHeaderBytes);
  if (behind.size() < header.payload_bytes) {
    return fail(Code::corrupt,
                fmt::format("compressed block: {} bytes of payload where {} are needed",
                            behind.size(), header.payload_bytes));
  }
  const ByteView payload = behind.first(header.payload_bytes);
  if (format::checksum64(payload) != header.payload_checksum) {
    return fail(Code::corrupt, "compressed block: the checksum of the payload is wrong");
  }
  if (header.codec == CodecId::raw) {
    if (payload.size() != out.size())
      return fail(Code::corrupt, "compressed block: raw data of another size");
    std::memcpy(out.data(), payload.data(), out.size());
  } else {
    DIAPAUSE_TRY_ASSIGN(Codec * codec, codec_of(header));
    DIAPAUSE_TRY(codec->decode(payload, header.shape, header.bound, out));
  }
  if (format::checksum64(out) != header.decoded_checksum) {
    return fail(
        Code::corrupt,
        fmt::format("compressed block: the {} decoder gives other values here than where the block "
                    "was written",
                    codec_name(header.codec)));
  }
  return {};
}

}  // namespace diapause::codec
