// Determines what could be restored now, and after a loss. The functions are pure: they compute the
// recovery plan that a restart would make if certain nodes were gone.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "format/manifest.hpp"
#include "redundancy/recovery.hpp"

namespace diapause::redundancy {

// The files of a version in one place, as far as they are known to be intact.
struct Evidence {
  std::string node;                            // empty for the global tier
  const format::Manifest* manifest = nullptr;  // null: there is no sound one
  Holdings holdings;
};

// A sorted set of lost nodes, as indices into Remains::nodes().
using Loss = std::vector<std::uint32_t>;

class Remains {
 public:
  explicit Remains(std::vector<Evidence> evidence);

  // Returns the nodes that the version's manifest names, in its order, then any others that hold
  // something.
  const std::vector<std::string>& nodes() const { return nodes_; }
  // Returns the nodes on which something was found.
  std::set<std::uint32_t> reached() const;

  // Returns what a restart would do if these nodes were lost and replaced by empty ones; nullopt if
  // no manifest would be left.
  std::optional<RecoveryPlan> plan_after(const Loss& lost) const;
  bool survives(const Loss& lost) const;

 private:
  const format::Manifest* deepest_manifest(const Loss& lost) const;

  std::vector<Evidence> evidence_;
  std::vector<std::string> nodes_;
};

struct Assessment {
  bool restorable = false;                 // whether it can be restored as it is now
  std::vector<std::uint32_t> missing;      // ranks that are missing, if it is not restorable
  std::vector<Source> sources;             // one per rank; empty if no manifest is left
  std::vector<std::uint32_t> fatal_nodes;  // nodes whose loss alone is fatal
  bool pairs_tried = false;  // false: there are fewer than two nodes, or too many pairs to try
  std::uint64_t pairs = 0;   // number of pairs
  std::uint64_t fatal_pairs = 0;
  std::vector<Loss> fatal_pair_examples;  // the first kMostExamples
  bool survives_all_nodes = false;        // it survives if only the global tier is left
};

inline constexpr std::size_t kMostExamples = 10;
inline constexpr std::size_t kMostNodesForPairs = 64;

Assessment assess(const Remains& remains);

}  // namespace diapause::redundancy
