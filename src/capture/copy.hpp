// The copy out of the program's memory, with the checksum computed on the way.
#pragma once

#include "base/bytes.hpp"

namespace diapause::capture {

// Copies `from` to `to` (same length, not overlapping) and returns format::checksum64(from). Past a few pages the
// stores bypass the cache: the copy will not be read soon, and a cached store would first read the line it overwrites.
std::uint64_t copy_with_checksum(MutableBytes to, ByteView from);

}  // namespace diapause::capture
