// Adopts orphaned images: captures that the last run of the job had in the memory tier when it
// ended, and had not published.
#pragma once

#include <optional>

#include "engine/job/context.hpp"

namespace diapause::engine {

// Makes a version of level 1 of the newest complete and sound capture, one with every rank's image,
// if it is newer than `newest`, the newest existing version. Returns whether it did. Captures that
// cannot be read are ignored. Fails only if the ranks cannot communicate, or if a capture may
// become readable in a moment; nothing may be removed then. Called by the process that holds the
// tier's lock, before anybody acquires a slot. Collective.
Result<bool> adopt_captures(const Context& context, const std::optional<format::VersionId>& newest);

}  // namespace diapause::engine
