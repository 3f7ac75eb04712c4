// Level 2: a second copy of every image on the partner node.
#pragma once

#include "engine/node/catalogue.hpp"
#include "engine/node/work.hpp"

namespace diapause::engine {

// Sends the images to the partners and keeps those of other ranks. Records the partners in the
// manifest. Collective.
Status copy_to_partners(Context& context, Catalogue& catalogue, Work& work);

}  // namespace diapause::engine
