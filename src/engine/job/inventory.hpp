// What there is to restart from: every node's tiers and the global one, as all ranks see them together.
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

// One version, wherever its parts lie. Judged by names; contents are verified when they are used.
struct StoredVersion {
  format::VersionId id;
  std::optional<format::Manifest> manifest;  // the one that knows of most levels
  std::vector<std::string> problems;         // damaged manifests, unreadable directories
  bool is_unreadable = false;                // some of that may be sound
  bool is_of_the_moment = false;             // it may be read a moment later
  std::vector<redundancy::Holdings> nodes;   // by node of the topology there is now
  redundancy::Holdings global;
  std::set<std::uint32_t> global_shared_files;  // those whose images count among `global`
  // Which node tier a node's file lies in.
  std::map<std::pair<std::uint32_t, std::string>, config::TierKind> tier_of;  // (node, file name)
  std::array<std::set<std::uint32_t>, 3> published_on;  // by tier: nodes that have a manifest (global: node 0)
  std::array<bool, 3> is_without_manifest_in{};         // by tier: some place has a directory, and never had a manifest
};

struct Inventory {
  std::vector<StoredVersion> versions;  // newest first
  // The job was finished: what is left of the starts before, newest first, counts as a version no more.
  std::vector<StoredVersion> finished;
  store::FinishedMark mark;
  // Why tiers are left out that may hold some.
  std::optional<Error> unread;
};

// Equal on all ranks. Collective.
Result<Inventory> take_inventory(Context& context);

}  // namespace diapause::engine
