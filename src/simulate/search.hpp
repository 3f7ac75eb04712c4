// Searches the best pattern of checkpoints by simulated runs, for cases without a formula: failures
// with memory, recorded failures, spares, allocations.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/levels.hpp"
#include "simulate/statistics.hpp"

namespace diapause::simulate {

// Simulates the pattern with seeds from `first_seed` on and returns each run's cost per useful
// work.
using Play =
    std::function<std::vector<double>(const model::Pattern& pattern, std::uint64_t first_seed)>;

struct Found {
  model::Pattern pattern;
  Estimate value;        // the value of that pattern
  Estimate start_value;  // the value of the pattern that the search began with
  // What that pattern saves, as a share of the same run's cost with the initial pattern.
  Estimate saved;
};

// Searches from `start`, whose `every` are whole numbers, in steps that become smaller. A step
// makes all intervals longer or shorter, or takes one level more or less often. All patterns in the
// search meet the same failures. The values in the result are from other failures than those by
// which the pattern was chosen, so that luck in the choice does not count as a saving.
Found best_pattern(const model::Pattern& start, const Play& play, std::uint64_t seed);

}  // namespace diapause::simulate
