// Level 4: writes images to the global tier, into a file per rank or into files that ranks share.
#pragma once

#include <vector>

#include "engine/node/catalogue.hpp"
#include "engine/node/image_source.hpp"

namespace diapause::engine {

// The durations of the parts of the step of level 4.
struct GlobalTimes {
  std::vector<double> encode_s;  // one for each rank, as in GlobalFacts
  double published_from_s = 0;   // sys::monotonic_s()
};

// Writes the images of the ranks that this process acts for, and publishes the version in the
// global tier, with level 4 added to the manifest. After a failure nothing of it is left there.
// Collective.
Result<GlobalTimes> write_to_global(const Context& context, Catalogue& catalogue,
                                    format::Manifest& manifest, const Outgoing& outgoing);

}  // namespace diapause::engine
