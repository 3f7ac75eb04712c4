// Looks into the files: what a version holds, and whether it is all as its manifest says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/collection.hpp"
#include "format/image.hpp"
#include "redundancy/survival.hpp"

namespace diapause::cli {

// What one rank stored.
struct RankDetails {
  std::optional<std::vector<format::Region>> regions;  // none: no file of it can be read from here
  std::string problem;                                 // then, why
  std::vector<format::Region> compressed;              // of its image in the global tier, if that is
  std::vector<std::string> found_in;                   // "memory node0", "global"
};

struct VersionDetails {
  const StoredVersion* version = nullptr;  // with a manifest
  std::vector<RankDetails> ranks;
};

// Reads the index of one image of each rank.
VersionDetails read_details(const StoredVersion& version);

struct VersionInspection {
  const StoredVersion* version = nullptr;
  bool vanished = false;  // the job removed or changed it while it was read; nothing else here counts then
  std::vector<store::DamagedFile> damages;
  std::vector<std::string> nodes;            // names for the numbers in `assessment`
  std::vector<std::string> nodes_unreached;  // those the manifest names and of which nothing is to be found
  redundancy::Assessment assessment;
  std::uint64_t files = 0, bytes = 0;  // read
};

// Reads every block of every file. `seen_s`: when the version was seen, Collection::seen_s. A job writes the two copies
// of a manifest one after the other; a version of which one was missing then is given some time since to become whole.
VersionInspection inspect(const StoredVersion& version, double seen_s);

struct JobInspection {
  const Job* job = nullptr;
  std::vector<VersionInspection> versions;
};

}  // namespace diapause::cli
