// The end of a job: the file `finished` in the job's directory of the global tier.
// docs/formats/finished.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "format/ids.hpp"
#include "sys/file.hpp"

namespace diapause::store {

inline constexpr const char* kFinishedName = "finished";

// The program writes this mark when its job is over. Versions of all starts up to this one are
// leftovers, wherever they are found; one of them may be kept.
struct FinishedMark {
  std::uint32_t incarnation = 0;  // 0: the job was never finished
  std::optional<format::VersionId> archive;

  bool covers(const format::VersionId& version) const { return version.incarnation <= incarnation; }
  bool operator==(const FinishedMark&) const = default;
};

std::string encode_finished(const FinishedMark& mark);
// Code::corrupt if it is not what encode_finished() gives.
Result<FinishedMark> decode_finished(const std::string& text);

// An empty mark if there is none in `job`, the job's directory of the global tier.
Result<FinishedMark> read_finished(const sys::Directory& job);
// Writes the mark, which is durable when this returns. One process of the job calls it.
Status write_finished(const sys::Directory& job, const FinishedMark& mark);

}  // namespace diapause::store
