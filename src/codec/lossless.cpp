#include "codec/lossless.hpp"

#include "codec/shuffle.hpp"

namespace diapause::codec {

Result<std::size_t> LosslessCodec::encode(ByteView raw, const Shape& shape, const Method& method, MutableBytes out) {
  planes_.resize(raw.size());
  shuffle(raw, shape.element_bytes(), planes_);
  Output output(out);
  for (std::uint64_t plane = 0; plane < shape.element_bytes(); ++plane) {
    const ByteView bytes = ByteView(planes_).subspan(plane * shape.count(), shape.count());
    if (id_ == CodecId::shuffle_lz4) {
      packer_.pack_lz4(bytes, output);
    } else {
      packer_.pack_zstd(bytes, method.level, output);
    }
  }
  return output.ok() ? output.size() : 0;
}

Status LosslessCodec::decode(ByteView payload, const Shape& shape, double /*bound*/, MutableBytes out) {
  planes_.resize(out.size());
  for (std::uint64_t plane = 0; plane < shape.element_bytes(); ++plane) {
    DIAPAUSE_TRY(unpacker_.unpack(payload, MutableBytes(planes_).subspan(plane * shape.count(), shape.count())));
  }
  if (!payload.empty()) return fail(Code::corrupt, "compressed block: bytes behind the last plane");
  unshuffle(planes_, shape.element_bytes(), out);
  return {};
}

}  // namespace diapause::codec
