// Decides which zones together are a node, each joule counted once. The code is pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "energy/meter.hpp"

namespace diapause::energy {

// A total is a choice of zones that do not contain one another. "node", "psys+gpu" and
// "package+dram" are different quantities: whoever shows a sum shows its name too.
struct Total {
  // It has the domains that the total is made of, joined by '+'. It is empty if there is nothing to
  // add up.
  std::string name;
  Kind kind = Kind::measured;      // modelled if any part is
  bool is_replayed = false;        // if any part is
  std::vector<std::size_t> zones;  // indexes
};
inline std::string_view kind_name(const Total& total) {
  return total.is_replayed ? kReplayed : kind_name(total.kind);
}

// Chooses the zones by which a node that a slow meter sees as a whole can be told apart in time.
// They are the total of those that are measured at least five times as often. The result is empty
// if the meter of the node is not slow, or if there are none.
Total choose_fast_parts(std::span<const Zone> zones, const Total& total);

// Returns whether what a domain uses is in a total of that name, itself or as a part of another:
// package is in psys, and all is in node. Code that adds something to a total asks here.
bool is_covered(std::string_view total, Domain domain);

// Chooses the most that can be known of a node's energy:
//   1. It takes a measured node. If several meters see the node, it takes the first, as nobody
//      knows whether they see the same.
//   2. Otherwise it takes the first of modules, psys, sockets, and packages with dram that is
//      measured. It adds the measured gpus (but modules have theirs inside), disks and networks.
//   3. Where no processor is measured it takes the modelled node, or the modelled packages, memory,
//      disks and networks where the profile does not have the rest of the node. It adds every
//      measured gpu.
//   4. Where no processor is measured or modelled it takes what is measured.
// Core and uncore are inside package and never counted. If several meters tell of a domain, the
// first one counts, because they name parts in their own ways; but gpus of different meters are
// different boards if their parts have other names.
Total choose_total(std::span<const Zone> zones);

}  // namespace diapause::energy
