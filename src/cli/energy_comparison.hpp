// How much more time, power and energy a job took than others, and whether that can be told. Pure.
#pragma once

#include <optional>
#include <span>

#include "cli/energy_summary.hpp"

namespace diapause::cli {

struct Change {
  // (value - baseline) / baseline, as published comparisons of checkpointing have it.
  double percent = 0;
  std::optional<double> off;  // either way, in percentage points; none: nothing tells

  // Whether it differs from 0 by more than what it may be off; none: nothing tells.
  std::optional<bool> is_told_apart() const;
};

struct Comparison {
  double seconds = 0;                   // of the baseline, the mean of them
  std::optional<double> watts, joules;  // the same
  std::optional<Change> runtime_change, watts_change, joules_change;
};

// What the meters may be off is in it: of sources that both sides share, as two runs on one machine
// do, what samples miss alone, since the sources are off alike. How far runs differ by themselves
// is in it where there are two baselines or more: with 95 % one more run of the same would lie
// within. `baselines` must not be empty.
Comparison compare(const EnergySummary& job, std::span<const EnergySummary> baselines);

}  // namespace diapause::cli
