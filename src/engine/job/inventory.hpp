// The inventory of versions to restart from: every node's tiers and the global tier, as all ranks
// see them together.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/job/context.hpp"
#include "format/manifest.hpp"
#include "redundancy/recovery.hpp"
#include "store/finished.hpp"

namespace diapause::engine {

// One version, wherever its parts lie. It is judged by names; contents are verified when they are
// used.
struct StoredVersion {
  format::VersionId id;
  std::optional<format::Manifest> manifest;  // if there are several, the one with the most levels
  std::vector<std::string> problems;         // damaged manifests, unreadable directories
  bool is_unreadable = false;                // some of the unreadable parts may be sound
  bool is_of_the_moment = false;             // the failure may be over in a moment
  std::vector<redundancy::Holdings> nodes;   // by the node of the present topology
  redundancy::Holdings global;
  std::set<std::uint32_t> global_shared_files;  // shared files whose images count among `global`
  // The node tier that a node's file lies in.
  std::map<std::pair<std::uint32_t, std::string>, config::TierKind> tier_of;  // (node, file name)
  // These are the nodes that have a manifest, by tier. The global tier counts as node 0.
  std::array<std::set<std::uint32_t>, 3> published_on;
  // Tells, by tier, whether some node has a directory that never had a manifest.
  std::array<bool, 3> is_without_manifest_in{};
};

struct Inventory {
  std::vector<StoredVersion> versions;  // newest first
  // Versions of starts before the job was finished, newest first. They do not count any more.
  std::vector<StoredVersion> finished;
  store::FinishedMark mark;
  // The reason why tiers that may hold versions were left out.
  std::optional<Error> unread;
};

// Returns the inventory, equal on all ranks. Collective.
Result<Inventory> take_inventory(const Context& context);

}  // namespace diapause::engine
