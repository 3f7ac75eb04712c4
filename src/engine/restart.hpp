// A restart under way: the version chosen and this rank's verified image of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/account.hpp"
#include "engine/inventory.hpp"
#include "redundancy/recovery.hpp"
#include "store/image_reader.hpp"

namespace diapause::engine {

// What a version is fetched for.
enum class Purpose {
  copy,          // regions are copied into the program's memory, with every block checked before
  map_checked,   // regions become memory of the program; every block is checked before
  map_unchecked  // this rank's own file is left to be checked while the program runs
};

// One version's images on all ranks, verified.
struct FetchedVersion {
  format::Manifest manifest;
  store::ImageReader image;          // this rank's
  double greatest_error = 0;         // of what all ranks get; 0: exact
  std::vector<std::string> sources;  // of every rank, for people: "own node", "peer node1", "parity", "global"
  bool needs_healing = false;        // a level the version had does not hold any more
  std::optional<store::ImageReader> unchecked;  // this rank's image once more, whose blocks are still to be checked
  std::vector<Phase> phases;                    // that the restart had so far
};

// Gets and verifies this version on all ranks, from wherever it is intact. Code::corrupt if it cannot be had, with the
// reasons. Collective; damaged files found on the way are taken out of `version`.
Result<FetchedVersion> fetch(Context& context, StoredVersion& version, Purpose purpose);

struct Restart {
  FetchedVersion fetched;
  double started_s = 0;
  bool stepped_back = false;

  store::ImageReader& image() { return fetched.image; }
  const store::ImageReader& image() const { return fetched.image; }
};

}  // namespace diapause::engine
