#pragma once

#include "engine/job/context.hpp"

namespace diapause::engine {

// Opens a tier on all ranks or on none. The process that acts for it makes what is missing.
// Collective.
Status open_tier(Context& context, config::TierKind kind);

}  // namespace diapause::engine
