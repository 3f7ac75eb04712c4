// Level 2: a second copy of every image on the partner node.
#pragma once

#include <cstdint>
#include <set>

#include "engine/node/catalogue.hpp"
#include "engine/node/work.hpp"

namespace diapause::engine {

// Sends the images to the partners and keeps those of other ranks. It records the partners in the
// manifest. Collective.
Status copy_to_partners(const Context& context, Catalogue& catalogue, Work& work);

// Does the same for the images of these ranks alone, with the partners that the manifest has.
// `ranks` is equal on all ranks. Collective.
Status copy_images(const Context& context, Catalogue& catalogue, Work& work,
                   const std::set<std::uint32_t>& ranks);

}  // namespace diapause::engine
