// The record of a job's starts: a small file in the job's directory of the global tier. Every start
// gets its incarnation from it, on whatever nodes it runs. docs/formats/starts.md.
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
  std::optional<VersionId> from;  // the version it was restarted from; none: it began anew
  bool has_versions = false;      // it has published a version in some tier
  std::string nodes;              // names of its nodes, for people
  bool operator==(const Start&) const = default;
};

// The incarnations in `list` are ascending. The oldest are dropped when there are more than kMost.
struct Starts {
  static constexpr std::size_t kMost = 256;
  std::vector<Start> list;
  bool operator==(const Starts&) const = default;

  std::uint32_t last_incarnation() const { return list.empty() ? 0 : list.back().incarnation; }
  Start* find(std::uint32_t incarnation);
  const Start* find(std::uint32_t incarnation) const;
  // Returns the start at which the history of `incarnation` began anew. If a record in that history
  // has been dropped, returns the oldest incarnation that the records name.
  std::uint32_t root_of(std::uint32_t incarnation) const;
};

ByteVector encode_starts(const Starts& starts);  // the last kMost of them
// Reads all format versions up to the present one. The input may be hostile. Returns Code::corrupt
// for data that are no such file or a damaged one, and Code::mismatch for a later format version.
Result<Starts> decode_starts(ByteView data);

}  // namespace diapause::format
