// Checksums: XXH3 of the xxHash library, seed 0. 64 bits a block, 128 bits for an image index.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"
#include "format/ids.hpp"

namespace diapause::format {

std::uint64_t checksum64(ByteView data);
Digest128 digest128(ByteView data);

// checksum64 of data that come piece by piece, as they pass through the cache anyway.
class Checksum64 {
 public:
  Checksum64();
  void update(ByteView data);
  std::uint64_t value() const;  // of all so far

 private:
  alignas(64) std::array<std::byte, 576> state_;  // of the library, whose header stays in the source file
};

}  // namespace diapause::format
