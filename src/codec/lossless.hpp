// Shuffle, then LZ4 or zstd for each plane. Payload: one packed run (pack.hpp) a plane, the lowest first.
#pragma once

#include "codec/codec.hpp"
#include "codec/pack.hpp"

namespace diapause::codec {

class LosslessCodec final : public Codec {
 public:
  explicit LosslessCodec(CodecId id) : id_(id) {}  // shuffle_lz4 or shuffle_zstd

  CodecId id() const override { return id_; }
  std::uint32_t version() const override { return 1; }
  Result<std::size_t> encode(ByteView raw, const Shape& shape, const Method& method, MutableBytes out) override;
  Status decode(ByteView payload, const Shape& shape, double bound, MutableBytes out) override;

 private:
  CodecId id_;
  Packer packer_;
  Unpacker unpacker_;
  ByteVector planes_;
};

}  // namespace diapause::codec
