// The processes of a job report which versions they have. These functions merge the reports,
// without side effects.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "engine/job/inventory.hpp"
#include "format/wire.hpp"
#include "store/tier.hpp"

namespace diapause::engine {

// The process that sends the manifest of a version: the first of those that have the deepest one.
struct Sender {
  std::uint32_t depth = 0;  // depth of the manifest plus 1; 0 if nobody has one
  std::size_t process = 0;
};

// Holds what is known of all versions while the reports are merged.
struct Merged {
  std::map<format::VersionId, StoredVersion> versions;
  std::map<format::VersionId, Sender> senders;
  store::FinishedMark mark;
};

// The beginning of a report: the mark of a finished job, which rank 0 reports for all.
void write_mark(format::Writer& report, const store::FinishedMark& mark);
// Adds what the process has found of a version in a tier of its node.
void describe(format::Writer& report, const store::FoundVersion& found, config::TierKind kind,
              std::uint32_t node);

// Merges the reports of all processes, by their places. The versions have no manifests yet.
// Code::comm if a report did not arrive whole.
Result<Merged> merge_reports(std::span<const ByteVector> reports, std::size_t node_count);

}  // namespace diapause::engine
