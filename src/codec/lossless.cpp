#include "codec/lossless.hpp"

#include "codec/shuffle.hpp"

namespace diapause::codec {

Result<std::size_t> LosslessCodec::encode(ByteView raw, const Shape& shape, const Method& method, MutableBytes out) {
  planes_.resize(raw.size());
  shuffle(raw, shape.element_bytes(), planes_);
  Output output(out);
  const int level = id_ == CodecId::shuffle_lz4 ? Packer::kLz4 : method.level;
  for (std::uint64_t plane = 0; plane < shape.element_bytes(); ++plane) {
    packer_.pack(ByteView(planes_).subspan(plane * shape.count(), shape.count()), level, output);
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
