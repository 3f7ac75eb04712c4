// The starts of a job, counted: the small file in its directory of the global tier from which every start gets its
// incarnation, on whatever nodes it runs. docs/formats/starts.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "format/ids.hpp"

namespace diapause::format {

inline constexpr std::uint32_t kStartsFormatVersion = 1;

struct Start {
  std::uint32_t incarnation = 0;
  std::uint64_t begun_unix_ns = 0;
  std::optional<VersionId> from;  // what it was restarted from; none: it began anew
  bool has_versions = false;      // it has published one, somewhere
  std::string nodes;              // their names, for people
  bool operator==(const Start&) const = default;
};

// With incarnations that grow. The oldest of many are left out.
struct Starts {
  static constexpr std::size_t kMost = 256;
  std::vector<Start> list;
  bool operator==(const Starts&) const = default;

  std::uint32_t last_incarnation() const { return list.empty() ? 0 : list.back().incarnation; }
  Start* find(std::uint32_t incarnation);
  const Start* find(std::uint32_t incarnation) const;
  // The start at which the history of this one began anew; itself, if what it came from is not known any more.
  std::uint32_t root_of(std::uint32_t incarnation) const;
};

ByteVector encode_starts(const Starts& starts);  // of the last kMost
// Reads all format versions up to the present one; its input may be anything. Code::corrupt for what is no such file
// or a damaged one, Code::mismatch for one of a later format version.
Result<Starts> decode_starts(ByteView data);

}  // namespace diapause::format
