// The identity of a job: a small file that says which job a directory belongs to. The job's
// directory in the global tier gets it once; copies lie in the node tiers.
// docs/formats/identity.md.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace diapause::format {

inline constexpr std::uint32_t kIdentityFormatVersion = 1;

// An id drawn at random when a job begins, and when a copy of its directory becomes a job of its
// own.
struct JobId {
  std::array<std::uint8_t, 16> bytes{};
  auto operator<=>(const JobId&) const = default;
  bool is_set() const { return *this != JobId{}; }
  std::string hex() const;  // 32 lower-case digits
};

struct JobIdentity {
  JobId id;
  JobId copied_from;  // not set if the job is not a copy
  std::uint64_t created_unix_ns = 0;
  std::string job;   // the name given at open
  std::string key;   // the name of its directory in every tier
  std::string home;  // the path of the global tier's directory in which this was written
  bool operator==(const JobIdentity&) const = default;
};

ByteVector encode_identity(const JobIdentity& identity);
// Reads all format versions up to the present one. The input may be hostile. Returns Code::corrupt
// for data that are no identity or a damaged one, and Code::mismatch for a later format version.
Result<JobIdentity> decode_identity(ByteView data);

}  // namespace diapause::format
