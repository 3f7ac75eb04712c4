#include "codec/lossless.hpp"

#include <algorithm>

#include "format/checksum.hpp"

namespace diapause::codec {
namespace {

// Data are hashed in pieces of this size, and then shuffled while in the second-level cache.
constexpr std::size_t kShuffledBytes = std::size_t{64} * 1024;

}  // namespace

Result<std::size_t> LosslessCodec::encode(ByteView raw, const Shape& shape, const Method& method,
                                          MutableBytes out) {
  const std::size_t width = shape.element_bytes(), count = shape.count();
  const std::size_t noise =
      id_ == CodecId::shuffle_lz4 && is_long(count) ? noise_planes(raw, width) : 0;
  Output output(out);
  Planes planes{};
  for (std::size_t plane = 0; plane < noise; ++plane)
    planes[plane] = keep_later(count, output).data();
  if (!output.ok()) return 0;
  planes_.resize(std::max(planes_.size(), (width - noise) * count));
  for (std::size_t plane = noise; plane < width; ++plane)
    planes[plane] = planes_.data() + (plane - noise) * count;
  shuffle_and_sum(raw, width, planes);
  for (std::size_t plane = noise; plane < width; ++plane) {
    const ByteView bytes(planes[plane], count);
    if (id_ == CodecId::shuffle_lz4) {
      packer_.pack_lz4(bytes, output);
    } else {
      packer_.pack_zstd(bytes, method.level, output);
    }
  }
  return output.ok() ? output.size() : 0;
}

// Returns how many planes, from the lowest, LZ4 would not make smaller. Their place in the payload
// is then known before anything is packed. In data of solvers they are the majority. The question
// is answered by a sample, before all data are shuffled.
std::size_t LosslessCodec::noise_planes(ByteView raw, std::size_t width) {
  planes_.resize(std::max(planes_.size(), width * kSampleBytes));
  for (std::size_t piece = 0; piece < kSamplePieces; ++piece) {
    Planes planes{};
    for (std::size_t b = 0; b < width; ++b)
      planes[b] = planes_.data() + b * kSampleBytes + piece * kPieceBytes;
    shuffle_to(raw.subspan(place_of_piece(piece, raw.size() / width) * width, kPieceBytes * width),
               width, planes);
  }
  std::size_t noise = 0;
  while (noise < width &&
         !packer_.gains_with_lz4(ByteView(planes_).subspan(noise * kSampleBytes, kSampleBytes))) {
    ++noise;
  }
  return noise;
}

void LosslessCodec::shuffle_and_sum(ByteView raw, std::size_t width, Planes planes) {
  format::Checksum64 sum;
  while (!raw.empty()) {
    const ByteView pass = raw.first(std::min(kShuffledBytes, raw.size()));
    sum.update(pass);
    shuffle_to(pass, width, planes);
    for (std::size_t b = 0; b < width; ++b) planes[b] += pass.size() / width;
    raw = raw.subspan(pass.size());
  }
  raw_checksum_ = sum.value();
}

Status LosslessCodec::decode(ByteView payload, const Shape& shape, double /*bound*/,
                             MutableBytes out) {
  planes_.resize(std::max(planes_.size(), out.size()));
  for (std::uint64_t plane = 0; plane < shape.element_bytes(); ++plane) {
    DIAPAUSE_TRY(unpacker_.unpack(
        payload, MutableBytes(planes_).subspan(plane * shape.count(), shape.count())));
  }
  if (!payload.empty()) return fail(Code::corrupt, "compressed block: bytes behind the last plane");
  unshuffle(ByteView(planes_).first(out.size()), shape.element_bytes(), out);
  return {};
}

}  // namespace diapause::codec
