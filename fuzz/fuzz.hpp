// Shared by the fuzz targets. A target defines LLVMFuzzerTestOneInput and calls must_hold for what
// it claims.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "base/bytes.hpp"

namespace diapause::fuzz {

// Ends the run, and with it tells the fuzzer to keep the input.
inline void must_hold(bool claim, const char* text) {
  if (claim) return;
  std::fprintf(stderr, "does not hold: %s\n", text);
  __builtin_trap();
}

inline ByteVector copy_of(const std::uint8_t* data, std::size_t size) {
  const ByteView bytes = std::as_bytes(std::span(data, size));
  return {bytes.begin(), bytes.end()};
}

inline void put_u64(ByteVector& bytes, std::size_t offset, std::uint64_t value) {
  for (std::size_t i = 0; i < 8; ++i) bytes[offset + i] = static_cast<std::byte>(value >> (8 * i));
}

}  // namespace diapause::fuzz
