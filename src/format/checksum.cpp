#include "format/checksum.hpp"

// Compiled into this file, with -O3 for it alone: 26 GB/s of memory with GCC 12, where the library gives 19.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace diapause::format {

std::uint64_t checksum64(ByteView data) { return XXH3_64bits(data.data(), data.size()); }

Digest128 digest128(ByteView data) {
  const XXH128_hash_t hash = XXH3_128bits(data.data(), data.size());
  return {hash.low64, hash.high64};
}

}  // namespace diapause::format
