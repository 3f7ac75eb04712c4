// Level 3: Reed-Solomon parity over each group. Layout: redundancy/layout.hpp.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "engine/node/catalogue.hpp"
#include "engine/node/work.hpp"

namespace diapause::engine {

// Computes and keeps the parities of the groups. Records the groups in the manifest. Collective.
Status encode_parity(const Context& context, Catalogue& catalogue, Work& work);

// Computes anew those parities, by group and member, that a node of this version lacks, and keeps
// them. They must be what the manifest says they were: else Code::corrupt, as data have changed.
// `missing` is equal everywhere. Collective.
Status complete_parity(const Context& context, Catalogue& catalogue, Work& work,
                       const std::set<std::pair<std::uint32_t, std::uint32_t>>& missing);

}  // namespace diapause::engine
