// The input is one byte that picks codec, type and shape, and then a payload. It is decoded as it
// is; in a checkpoint only a payload with the right checksum would be. SZ3 is left out: it trusts
// its payload, and nothing else may reach it.
#include "codec/codec.hpp"
#include "fuzz.hpp"

using namespace diapause;
using codec::CodecId;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  constexpr codec::Dims kDims[] = {{1, 1, 1, 1}, {1, 1, 1, 40}, {1, 1, 20, 17}, {1, 3, 9, 33}};
  constexpr CodecId kCodecs[] = {CodecId::lattice, CodecId::shuffle_lz4, CodecId::shuffle_zstd,
                                 CodecId::zfp};
  const auto type = data[0] % 2 == 0 ? format::ElementType::float32 : format::ElementType::float64;
  const codec::Shape shape{type, kDims[data[0] / 2 % 4]};
  auto one = codec::make_codec(kCodecs[data[0] / 8 % 4]);
  if (!one) return 0;  // this build has no ZFP
  ByteVector out(shape.bytes());
  const Status decoded = (*one)->decode(fuzz::copy_of(data + 1, size - 1), shape, 1e-3, out);
  if (!decoded) fuzz::must_hold(!decoded.error().message.empty(), "a refusal says why");
  return 0;
}
