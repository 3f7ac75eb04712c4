// Makes mutated input sound again where formats protect themselves, so that a fuzzer gets behind
// the length and the digest.
#pragma once

#include "format/checksum.hpp"
#include "fuzz.hpp"

namespace diapause::fuzz {

inline constexpr std::size_t kDigestBytes = 16;  // at the end, of all before it

inline void seal_digest(ByteVector& bytes) {
  const format::Digest128 digest =
      format::digest128(ByteView(bytes).first(bytes.size() - kDigestBytes));
  put_u64(bytes, bytes.size() - 16, digest.low);
  put_u64(bytes, bytes.size() - 8, digest.high);
}

// Makes an input sound whose format has its length in 64 bits at `length_offset`. An input that is
// too short for that stays as it is.
inline void seal(ByteVector& bytes, std::size_t length_offset) {
  if (bytes.size() < length_offset + 8 + kDigestBytes) return;
  put_u64(bytes, length_offset, bytes.size());
  seal_digest(bytes);
}

}  // namespace diapause::fuzz
