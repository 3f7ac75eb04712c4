// Level 3: Reed-Solomon parity over each group. Layout: redundancy/layout.hpp.
#pragma once

#include "engine/node/catalogue.hpp"
#include "engine/node/work.hpp"

namespace diapause::engine {

// Computes and keeps the parities of the groups. Records the groups in the manifest. Collective.
Status encode_parity(Context& context, Catalogue& catalogue, Work& work);

}  // namespace diapause::engine
