#include "format/checksum.hpp"

#include <xxhash.h>

namespace diapause::format {

std::uint64_t checksum64(ByteView data) { return XXH3_64bits(data.data(), data.size()); }

Digest128 digest128(ByteView data) {
  const XXH128_hash_t hash = XXH3_128bits(data.data(), data.size());
  return {hash.low64, hash.high64};
}

}  // namespace diapause::format
