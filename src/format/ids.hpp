// Identifiers that occur in checkpoint files.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>

namespace diapause::format {

// Drawn once per checkpoint and written into every file of it, so that files of different
// checkpoints never mix, whether they come from another job, an earlier run, or an earlier attempt
// at the same version number. The first four bytes, big-endian, count the checkpoints that this
// start of the job has attempted, so that of two attempts at one number the later compares greater;
// 96 random bits follow.
struct CommitId {
  std::array<std::uint8_t, 16> bytes{};
  auto operator<=>(const CommitId&) const = default;
  std::string hex() const;  // 32 lower-case digits
};

// Versions are ordered by age: a later incarnation (start of the job) is newer, whatever its
// version numbers are.
struct VersionId {
  std::uint32_t incarnation = 0;
  std::uint64_t number = 0;  // the number that the program gave
  CommitId commit;
  auto operator<=>(const VersionId&) const = default;
};

struct Digest128 {
  std::uint64_t low = 0, high = 0;
  auto operator<=>(const Digest128&) const = default;
};

}  // namespace diapause::format
