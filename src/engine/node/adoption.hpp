// What the last run of the job had captured in the memory tier when it ended, and had not published yet.
#pragma once

#include <optional>

#include "engine/job/context.hpp"

namespace diapause::engine {

// Makes the newest capture of which every rank's image is there, whole and sound, a version of level 1, if it is newer
// than `newest`, the newest version there is. Whether it did. What cannot be read is as good as not there; fails only
// if the ranks cannot communicate, or if it may be read a moment later: nothing may be cleared away then. By who holds
// the tier's lock, before anybody acquires a slot. Collective.
Result<bool> adopt_captures(Context& context, const std::optional<format::VersionId>& newest);

}  // namespace diapause::engine
