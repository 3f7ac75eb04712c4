// The copy out of the program's memory and back into it, which computes the checksum at the same
// time.
#pragma once

#include "base/bytes.hpp"

namespace diapause::format {

// Copies `from` to `to` (same length, not overlapping) and returns checksum64(from). Beyond
// a few pages the stores bypass the cache: the copy will not be read soon, and a cached store would
// first read the line that it overwrites.
std::uint64_t copy_with_checksum(MutableBytes to, ByteView from);

}  // namespace diapause::format
