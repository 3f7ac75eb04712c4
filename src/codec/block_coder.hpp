// Encodes and decodes one block. Stored data are never wrong without an error: a lossy payload is
// decoded again and every value is compared before the payload is kept, and the checksum of a later
// decoding is compared with the one of that first decoding.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "codec/codec.hpp"
#include "codec/lossless.hpp"

namespace diapause::codec {

// The reason why a block is not stored with the lossy codec that was asked for.
enum class Fallback {
  none,
  smaller,          // lossless encoding takes less space
  bound_too_small,  // the codec cannot resolve the bound for the values of this block
  guard             // the codec failed, or a value came back out of bounds
};

struct BlockReport {
  CodecId codec = CodecId::raw;  // the codec it is stored with
  Fallback fallback = Fallback::none;
  std::uint64_t raw_bytes = 0;
  std::uint64_t stored_bytes = 0;  // including the header
  double greatest_error = 0;       // the measured error of a lossy block
};

// Returns Code::argument for a bound that is NaN, infinite, zero, negative or denormal, for a lossy
// method on elements that are not floating-point, and for a level that zstd does not have.
Status check_method(const Method& method, format::ElementType type);

// Encodes blocks. One thread at a time may use it. It takes a small multiple of the memory of the
// largest block so far and returns Code::memory if there is not enough; it does not throw.
class BlockEncoder {
 public:
  // Returns Code::config if this build does not have the codec.
  static Result<BlockEncoder> create(const Method& method);

  // Encodes the shape.bytes() bytes of `raw`, which must be above 0 and at most kMaxBlockBytes, and
  // must not change during the call. The method must pass check_method() for shape.type. The
  // encoded block is in block() until the next call and has at most raw.size() + kBlockHeaderBytes
  // bytes.
  Result<BlockReport> encode(ByteView raw, const Shape& shape);
  ByteView block() const {
    return ByteView(block_).first(kBlockHeaderBytes + header_.payload_bytes);
  }

 private:
  explicit BlockEncoder(const Method& method) : method_(method) {}
  BlockReport encode_or_throw(ByteView raw, const Shape& shape);
  Fallback try_lossy(ByteView raw, const Shape& shape);
  void try_lossless(ByteView raw, const Shape& shape);
  void store_raw(ByteView raw);
  bool may_be_smaller_without_loss(ByteView raw, const Shape& shape);
  static MutableBytes payload_of(ByteVector& block) {
    return MutableBytes(block).subspan(kBlockHeaderBytes);
  }

  Method method_;
  std::unique_ptr<Codec> lossy_;
  std::optional<LosslessCodec> lossless_;
  BlockHeader header_;        // header of the block in block_
  ByteVector block_, other_;  // header and payload, at least as large as the largest block so far
  double greatest_error_ = 0;
};

// Decodes blocks. One thread at a time may use it.
class BlockDecoder {
 public:
  // Decodes the block at the front of `data`, ignoring what follows it, into `out`. `expected` is
  // the shape according to the region. Returns Code::corrupt for another shape and for data that do
  // not match their checksums, and Code::mismatch or Code::config for a codec, or a version of it,
  // that this build does not have. After a failure the content of `out` is undefined.
  Status decode(ByteView data, const Shape& expected, MutableBytes out);

 private:
  Status decode_or_throw(ByteView data, const Shape& expected, MutableBytes out);
  Result<Codec*> codec_of(const BlockHeader& header);

  std::array<std::unique_ptr<Codec>, 6> codecs_;
};

}  // namespace diapause::codec
