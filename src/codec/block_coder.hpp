// One block, from the program's bytes to what is stored and back. What is stored is never wrong in silence: a lossy
// payload is decoded again and every value compared before it is kept, and what a decoder gives is compared with what
// it gave then.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "codec/codec.hpp"
#include "codec/lossless.hpp"

namespace diapause::codec {

// Why a block is not stored with the lossy codec that was asked for.
enum class Fallback {
  none,
  smaller,          // without loss it takes less
  bound_too_small,  // for the values of this block: the codec cannot resolve it
  guard             // it failed, or a value came back out of bounds
};

struct BlockReport {
  CodecId codec = CodecId::raw;  // as it is stored
  Fallback fallback = Fallback::none;
  std::uint64_t raw_bytes = 0;
  std::uint64_t stored_bytes = 0;  // with the header
  double greatest_error = 0;       // of a lossy block, measured
};

// Code::argument, in words: a bound that is no number, infinite, zero, negative or denormal; a lossy method for
// elements that are not floating-point; a level that zstd does not have.
Status check_method(const Method& method, format::ElementType type);

// Not for several threads at once. Memory: a small multiple of the largest block so far. Where there is not so much,
// Code::memory; nothing throws.
class BlockEncoder {
 public:
  // Code::config if this build does not have the codec.
  static Result<BlockEncoder> create(const Method& method);

  // 0 < shape.bytes() == raw.size() <= kMaxBlockBytes, and the method passes check_method for shape.type. `raw` must
  // not change meanwhile. The block itself is in block() until the next call: at most raw.size() + kBlockHeaderBytes.
  Result<BlockReport> encode(ByteView raw, const Shape& shape);
  ByteView block() const { return ByteView(block_).first(kBlockHeaderBytes + header_.payload_bytes); }

 private:
  explicit BlockEncoder(const Method& method) : method_(method) {}
  BlockReport encode_or_throw(ByteView raw, const Shape& shape);
  Fallback try_lossy(ByteView raw, const Shape& shape);
  void try_lossless(ByteView raw, const Shape& shape);
  void store_raw(ByteView raw);
  bool may_be_smaller_without_loss(ByteView raw, const Shape& shape);
  static MutableBytes payload_of(ByteVector& block) { return MutableBytes(block).subspan(kBlockHeaderBytes); }

  Method method_;
  std::unique_ptr<Codec> lossy_;
  std::optional<LosslessCodec> lossless_;
  BlockHeader header_;        // of what lies in block_
  ByteVector block_, other_;  // header and payload, at least as large as the largest block so far
  double greatest_error_ = 0;
};

// Not for several threads at once.
class BlockDecoder {
 public:
  // The bytes behind the block at the front of `data` are left alone. `expected` is what the region says; Code::corrupt
  // for another shape, and for whatever does not have its checksums; Code::mismatch or Code::config for a codec, or a
  // version of it, that this build does not have. After a failure `out` holds anything.
  Status decode(ByteView data, const Shape& expected, MutableBytes out);

 private:
  Status decode_or_throw(ByteView data, const Shape& expected, MutableBytes out);
  Result<Codec*> codec_of(const BlockHeader& header);

  std::array<std::unique_ptr<Codec>, 6> codecs_;
};

}  // namespace diapause::codec
