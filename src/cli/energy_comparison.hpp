// Says how much more time, power and energy a job took than others, and whether that can be told.
// The code is pure.
#pragma once

#include <optional>
#include <span>

#include "cli/energy_summary.hpp"

namespace diapause::cli {

struct Change {
  // It is (value - baseline) / baseline, as published comparisons of checkpointing have it.
  double percent = 0;
  std::optional<double> off;  // either way, in percentage points; none: nothing tells

  // Returns whether it differs from 0 by more than what it may be off; nullopt if nothing tells.
  std::optional<bool> is_told_apart() const;
};

// Returns whether the lines tell that both ran on the same machines, and on no others.
bool share_machines(const EnergySummary& one, const EnergySummary& other);

struct Comparison {
  double seconds = 0;                   // of the baseline, the mean of them
  std::optional<double> watts, joules;  // the same
  std::optional<Change> runtime_change, watts_change, joules_change;
};

// Returns changes whose `off` includes what the meters may be off. Of sources that both sides
// share on the same machines only what samples miss is included, since they are off alike. Where
// there are two baselines or more, `off` includes how far runs differ by themselves: with 95 % one
// more run of the same would lie within. Power and energy have no change where any energy of a run
// is missing, and the change of energy includes what may have been used in gaps. `baselines` must
// not be empty.
Comparison compare(const EnergySummary& job, std::span<const EnergySummary> baselines);

}  // namespace diapause::cli
