#pragma once

#include "engine/job/context.hpp"

namespace diapause::engine {

// One tier, opened on all ranks or on none; whoever acts for it makes what is missing. Collective.
Status open_tier(Context& context, config::TierKind kind);

}  // namespace diapause::engine
