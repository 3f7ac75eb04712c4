// The pattern of checkpoints that runs find to be the best, where there is no formula: failures with a memory, recorded
// ones, spares, allocations.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/levels.hpp"
#include "simulate/statistics.hpp"

namespace diapause::simulate {

// Plays the pattern with the seeds from `first_seed` on: what each run costs per useful work.
using Play = std::function<std::vector<double>(const model::Pattern& pattern, std::uint64_t first_seed)>;

struct Found {
  model::Pattern pattern;
  Estimate value;        // of it
  Estimate start_value;  // of the pattern that the search began with
  Estimate saved;        // by it, as a share of what the same run costs with the pattern of the start
};

// From `start`, whose `every` are whole numbers, in steps that become smaller: all intervals longer or shorter, and one
// level more or less often. All patterns of the search see the same failures. What stands in the result is of other
// failures than those that the pattern was chosen by, so that luck in the choice does not count as a saving.
Found best_pattern(const model::Pattern& start, const Play& play, std::uint64_t seed);

}  // namespace diapause::simulate
