// Finds out which job this is: by the identity in its global directory, or, if that cannot be used
// or has none, by those in the nodes' tiers. docs/decisions/0030-identity-lies-in-the-directory.md.
#pragma once

#include "engine/job/context.hpp"

namespace diapause::engine {

// Returns the identity of the job, equal on all ranks. A job that is known nowhere is
// made. A directory that was copied while the original still exists becomes a job of its own, and
// the log says so. Only communication and the drawing of random bytes can fail here: a directory
// that cannot be used shows when its tier is opened. Collective, before any tier is opened.
Result<format::JobIdentity> find_identity(const Context& context);

// Stores the identity in the open node tiers, for a start at which the global directory is
// unusable. Called by the processes that act for these tiers; not collective.
void leave_identity(const Context& context);

// If this machine was renamed, gives what it stored in its node tiers under the former name to its
// present name. Called by the processes that act for these tiers before they are opened; not
// collective.
void take_over_renamed_node(const Context& context);

// Returns the path of the tier's directory, for all jobs; empty if there is no such tier.
const std::string& root_of(const config::Settings& settings, config::TierKind kind);

}  // namespace diapause::engine
