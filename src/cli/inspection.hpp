// Reads the files of a version: what it holds, and whether everything agrees with its manifest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/collection.hpp"
#include "format/image.hpp"
#include "redundancy/survival.hpp"

namespace diapause::cli {

// The stored data of one rank.
struct RankDetails {
  // Nullopt: none of its files can be read from here.
  std::optional<std::vector<format::Region>> regions;
  std::string problem;  // the reason, if there are no regions
  // The regions of its image in the global tier, if that is compressed.
  std::vector<format::Region> compressed;
  std::vector<std::string> found_in;  // such as "memory node0", "global"
};

struct VersionDetails {
  const CollectedVersion* version = nullptr;  // has a manifest
  std::vector<RankDetails> ranks;
};

// Reads the index of one image of each rank.
VersionDetails read_details(const CollectedVersion& version);

struct VersionInspection {
  const CollectedVersion* version = nullptr;
  // The job removed or changed it while it was read; the other members are meaningless then.
  bool vanished = false;
  std::vector<store::DamagedFile> damages;
  std::vector<std::string> nodes;  // names of the node numbers in `assessment`
  // Nodes that the manifest names and of which nothing was found.
  std::vector<std::string> nodes_unreached;
  redundancy::Assessment assessment;
  std::uint64_t files = 0, bytes = 0;  // numbers of what was read
};

// Reads every block of every file. `seen_s` is when the version was seen, Collection::seen_s. A job
// writes the two copies of a manifest one after the other, so a version that lacked a copy then is
// given some time to become complete.
VersionInspection inspect(const CollectedVersion& version, double seen_s);

struct JobInspection {
  const Job* job = nullptr;
  std::vector<VersionInspection> versions;
};

}  // namespace diapause::cli
