// The checksums are XXH3 of the xxHash library with seed 0, 64 bits for a block and 128 bits for an
// image index.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"
#include "format/ids.hpp"

namespace diapause::format {

std::uint64_t checksum64(ByteView data);
Digest128 digest128(ByteView data);

// Computes checksum64 of data that arrive in pieces, while they are in the cache anyway.
class Checksum64 {
 public:
  Checksum64();
  void update(ByteView data);
  // Copies `from` to `to` (same length, not overlapping) on the way. Beyond a few pages the stores
  // bypass the cache: the copy will not be read soon, and a cached store would first read the line
  // that it overwrites.
  void copy(MutableBytes to, ByteView from);
  std::uint64_t value() const;  // the checksum of all data so far

 private:
  // The state of the library, whose header is included only by the source file.
  alignas(64) std::array<std::byte, 576> state_;
};

}  // namespace diapause::format
