// What the last run of a job had captured and not published when it ended: a restart makes a version of it
// (docs/decisions/0015-captures-outlive-the-job.md), so whoever looks is told of it as of one.
#pragma once

#include "cli/collection.hpp"

namespace diapause::cli {

// Adds to each job that does not run what its next start would find whole: captures newer than all versions, of which
// every rank's image is there with a sound header and index. Their blocks are `verify`'s business.
void add_captures(Collection& collection, std::map<std::string, VersionsById>& jobs);

// Whether images newer than all versions of the job may lie there that the next start could publish, by their headers.
bool may_hold_captures(const sys::Directory& place, const Job& job);

}  // namespace diapause::cli
