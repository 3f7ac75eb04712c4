// Checksums: XXH3 of the xxHash library, seed 0. 64 bits a block, 128 bits for an image index.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "format/ids.hpp"

namespace diapause::format {

std::uint64_t checksum64(ByteView data);
Digest128 digest128(ByteView data);

}  // namespace diapause::format
