// The copy out of the program's memory and back into it, which computes the checksum at the same
// time.
#pragma once

#include "base/bytes.hpp"

namespace diapause::format {

// Copies `from` to `to` as Checksum64::copy() does, and returns checksum64(from).
std::uint64_t copy_with_checksum(MutableBytes to, ByteView from);

}  // namespace diapause::format
