// Images that nodes of a version have lost come back from other nodes that have them, or from their
// groups.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/node/catalogue.hpp"
#include "engine/node/work.hpp"

namespace diapause::engine {

// A file of a version that is missing on a node: the image of rank `index`, or the parity of member
// `member` of group `index`.
struct MissingFile {
  std::uint32_t node = 0;
  std::uint32_t is_parity = 0;
  std::uint32_t index = 0;
  std::uint32_t member = 0;
};

// Puts the images of ranks that their own nodes lack into the tier. `missing` is all that is
// missing of the version, and equal everywhere. Collective.
Status fetch_lost_images(const Context& context, Catalogue& catalogue, Work& work,
                         const std::vector<MissingFile>& missing);

}  // namespace diapause::engine
