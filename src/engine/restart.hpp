// A restart under way: the version chosen and this rank's verified image of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/inventory.hpp"
#include "redundancy/recovery.hpp"
#include "store/image_reader.hpp"

namespace diapause::engine {

// One version's images on all ranks, verified.
struct FetchedVersion {
  format::Manifest manifest;
  store::ImageReader image;          // this rank's
  std::vector<std::string> sources;  // of every rank, for people: "own node", "peer node1", "parity", "global"
  bool needs_healing = false;        // a level the version had does not hold any more
};

// Gets and verifies this version on all ranks, from wherever it is intact. Code::corrupt if it cannot be had, with the
// reasons. Collective; damaged files found on the way are taken out of `version`.
Result<FetchedVersion> fetch(Context& context, StoredVersion& version);

struct Restart {
  FetchedVersion fetched;
  double started_s = 0;
  bool stepped_back = false;

  store::ImageReader& image() { return fetched.image; }
  const store::ImageReader& image() const { return fetched.image; }
};

}  // namespace diapause::engine
