// SHA-256 and HMAC with it (FIPS 180-4, RFC 2104): by these two ends of a connection show each
// other that they know a secret, without sending it.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"

namespace diapause {

using Digest = std::array<std::byte, 32>;

Digest sha256(ByteView data);
Digest hmac_sha256(ByteView key, ByteView message);
// Compares in a time that does not tell where the two differ.
bool is_equal_secret(ByteView one, ByteView other);

}  // namespace diapause
