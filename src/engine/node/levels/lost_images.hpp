// Images that nodes of a version have lost come back from other nodes that have them, or from their
// groups.
#pragma once

#include "engine/node/catalogue.hpp"
#include "engine/node/work.hpp"

namespace diapause::engine {

// Puts the images of ranks that their own nodes lack into the tier. Collective.
Status fetch_lost_images(const Context& context, Catalogue& catalogue, Work& work);

}  // namespace diapause::engine
