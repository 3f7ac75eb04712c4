// Level 3 keeps Reed-Solomon parity over each group. redundancy/layout.hpp describes the layout.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "engine/node/catalogue.hpp"
#include "engine/node/work.hpp"

namespace diapause::engine {

// Computes and keeps the parities of the groups, and records the groups in the manifest.
// Collective.
Status encode_parity(const Context& context, Catalogue& catalogue, Work& work);

// Computes anew those parities, by group and member, that a node of this version lacks, and keeps
// them. They must equal what the manifest says of them; otherwise data has changed, and the result
// is Code::corrupt. `missing` is equal everywhere. Collective.
Status complete_parity(const Context& context, Catalogue& catalogue, Work& work,
                       const std::set<std::pair<std::uint32_t, std::uint32_t>>& missing);

}  // namespace diapause::engine
