#include "codec/codec.hpp"

#include <fmt/format.h>

#include "codec/lattice.hpp"
#include "codec/lossless.hpp"

namespace diapause::codec {

Result<std::unique_ptr<Codec>> make_codec(CodecId id) {
  switch (id) {
    case CodecId::shuffle_lz4:
    case CodecId::shuffle_zstd:
      return std::make_unique<LosslessCodec>(id);
    case CodecId::lattice:
      return std::make_unique<LatticeCodec>();
    case CodecId::sz3:
    case CodecId::zfp:
    case CodecId::raw:
      break;
  }
  return fail(Code::mismatch, fmt::format("codec {} is unknown to this build", static_cast<std::uint32_t>(id)));
}

}  // namespace diapause::codec
