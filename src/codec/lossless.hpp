// Shuffles bytes, then packs each plane with LZ4 or zstd. Payload: one packed run (pack.hpp) per
// plane, the lowest first.
#pragma once

#include "codec/codec.hpp"
#include "codec/pack.hpp"
#include "codec/shuffle.hpp"

namespace diapause::codec {

class LosslessCodec final : public Codec {
 public:
  explicit LosslessCodec(CodecId id) : id_(id) {}  // either shuffle_lz4 or shuffle_zstd

  CodecId id() const override { return id_; }
  std::uint32_t version() const override { return 1; }
  Result<std::size_t> encode(ByteView raw, const Shape& shape, const Method& method,
                             MutableBytes out) override;
  Status decode(ByteView payload, const Shape& shape, double bound, MutableBytes out) override;

  // Returns the checksum of the input of the last encode() that did not return 0; the input passes
  // through the cache there anyway.
  std::uint64_t raw_checksum() const { return raw_checksum_; }

 private:
  std::size_t noise_planes(ByteView raw, std::size_t width);
  void shuffle_and_sum(ByteView raw, std::size_t width, Planes planes);

  CodecId id_;
  Packer packer_;
  Unpacker unpacker_;
  ByteVector planes_;
  std::uint64_t raw_checksum_ = 0;
};

}  // namespace diapause::codec
