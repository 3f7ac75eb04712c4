#include "codec/codec.hpp"

#include <fmt/core.h>

#include "codec/library_codec.hpp"
#include "codec/lossless.hpp"
#include "codec/uniform_quantiser.hpp"

namespace diapause::codec {
namespace {

[[maybe_unused]] tl::unexpected<Error> fail_without(CodecId id, const char* option) {
  return fail(Code::config, fmt::format("this build has no codec {}: configure it with -D{}=ON",
                                        codec_name(id), option));
}

}  // namespace

Result<std::unique_ptr<Codec>> make_codec(CodecId id) {
  switch (id) {
    case CodecId::shuffle_lz4:
    case CodecId::shuffle_zstd:
      return std::make_unique<LosslessCodec>(id);
    case CodecId::lattice:
      return std::make_unique<UniformQuantiser>();
    case CodecId::sz3:
#ifdef DIAPAUSE_WITH_SZ3
      return make_sz3_codec();
#else
      return fail_without(id, "DIAPAUSE_WITH_SZ3");
#endif
    case CodecId::zfp:
#ifdef DIAPAUSE_WITH_ZFP
      return make_zfp_codec();
#else
      return fail_without(id, "DIAPAUSE_WITH_ZFP");
#endif
    case CodecId::raw:
      break;
  }
  return fail(Code::mismatch,
              fmt::format("codec {} is unknown to this build", static_cast<std::uint32_t>(id)));
}

}  // namespace diapause::codec
