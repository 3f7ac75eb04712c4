// Captures that the last run of a job had not published when it ended. A restart makes a version of
// them (docs/decisions/0015-captures-outlive-the-job.md), so the verbs show them as one.
#pragma once

#include "cli/collection.hpp"

namespace diapause::cli {

// Adds to each job that does not run the capture that its next start would find complete: one that
// is newer than all versions and has every rank's image with a sound header and index. Blocks are
// checked by `verify`.
void add_captures(Collection& collection, std::map<std::string, VersionsById>& jobs);

// Returns whether the place may hold images, judged by their headers, that are newer than all
// versions of the job and that the next start could publish.
bool may_hold_captures(const sys::Directory& place, const Job& job);

}  // namespace diapause::cli
