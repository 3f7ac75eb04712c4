// Which job this is: by the identity that lies in its global directory, or, where that cannot be used or has none, by
// those that the nodes' tiers hold. docs/decisions/0030-identity-lies-in-the-directory.md.
#pragma once

#include "engine/job/context.hpp"

namespace diapause::engine {

// Sets the identity and the key of the job, the same on all ranks. A job that is not known anywhere is born; one whose
// directory was copied, while the original is still there, becomes a job of its own, and the log says so. Nothing here
// fails but communication and the drawing of random bytes: a directory that cannot be used shows when its tier is
// opened. Collective, before any tier is opened.
Status find_identity(Context& context);

// Leaves the identity in the node tiers that are open, for the day on which the global directory cannot tell. By
// whoever acts for them; not collective.
void leave_identity(Context& context);

// Gives what this machine left in its node tiers under an earlier name to the node that it is now. By whoever acts for
// them, before they are opened; not collective.
void take_over_renamed_node(Context& context);

// Path of the tier's directory, for all jobs; empty where there is none.
const std::string& root_of(const config::Settings& settings, config::TierKind kind);

}  // namespace diapause::engine
