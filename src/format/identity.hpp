// The identity of a job: the small file that says which job a directory belongs to. It lies in the job's directory of
// the global tier, which gets it once, and in the node tiers. docs/formats/identity.md.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace diapause::format {

inline constexpr std::uint32_t kIdentityFormatVersion = 1;

// Drawn at random when a job begins, and when a copy of its directory becomes a job of its own.
struct JobId {
  std::array<std::uint8_t, 16> bytes{};
  auto operator<=>(const JobId&) const = default;
  bool is_set() const { return *this != JobId{}; }
  std::string hex() const;  // 32 lower-case digits
};

struct JobIdentity {
  JobId id;
  JobId copied_from;  // not set: it is no copy
  std::uint64_t created_unix_ns = 0;
  std::string job;   // the name given at open
  std::string key;   // the name of its directory in every tier
  std::string home;  // path of the global directory it lay in when this was written; of the tier, not of the job
  bool operator==(const JobIdentity&) const = default;
};

ByteVector encode_identity(const JobIdentity& identity);
// Reads all format versions up to the present one; its input may be anything. Code::corrupt for what is no identity or
// a damaged one, Code::mismatch for one of a later format version.
Result<JobIdentity> decode_identity(ByteView data);

}  // namespace diapause::format
