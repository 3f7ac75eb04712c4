// Helpers for tests of decoders, which build files that no encoder would write.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"

namespace diapause::format {

// Writes the number at the offset, in `size` bytes, lowest byte first.
inline void put(ByteVector& bytes, std::size_t offset, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i)
    bytes[offset + i] = static_cast<std::byte>(value >> (8 * i));
}

}  // namespace diapause::format
