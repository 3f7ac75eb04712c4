// Adopts orphaned images: captures that the last run of the job had in the memory tier when it
// ended, and had not published.
#pragma once

#include <optional>

#include "engine/job/context.hpp"

namespace diapause::engine {

// Takes the newest sound capture that has every rank's image, and makes a version of level 1 of it,
// if it is newer than `newest`, the newest existing version. Returns whether it did. Captures that
// cannot be read are ignored. It fails only if the ranks cannot communicate, or if a capture may
// become readable in a moment; nothing may be removed then. The process that holds the tier's lock
// calls it, before anybody acquires a slot. Collective.
Result<bool> adopt_captures(const Context& context, const std::optional<format::VersionId>& newest);

}  // namespace diapause::engine
