// Compares the cost of a job's checkpoints with the schedule that would have been best for the
// failures that occurred. The functions are pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "energy/measured_job.hpp"
#include "model/optimum.hpp"

namespace diapause::cli {

struct Hindsight {
  // Otherwise the rates are those of the last choice of a schedule.
  bool are_failures_observed = false;
  std::size_t failures = 0;   // that were observed
  double failures_per_s = 0;  // rate of all classes together
  model::Pattern as_was;      // means over the whole job, for the levels of `best`
  model::Cost cost;           // expected cost of that pattern
  model::Plan best;           // the plan of least time
  model::Powers powers;       // all 1 if the powers are unknown
  bool has_powers = false;

  double more_time() const { return cost.wall_per_work() / best.wall_per_work() - 1; }
  // The pattern with the least energy, which may differ from `best`, and its power.
  model::Plan cheapest;
  double least_watts = 0;
  double more_energy() const { return cost.watts_per_work(powers) / least_watts - 1; }
};

// Returns nullopt if nothing failed and no rates were given, or if there are too few checkpoints to
// compute intervals.
std::optional<Hindsight> hindsight_of(const energy::MeasuredJob& job);

// Returns text such as "a failure every 3 min (of 1 failure: known to a factor of 40)". A rate that
// few failures tell is known badly, and has two digits.
std::string failures_text(const Hindsight& hindsight);

// Returns some lines of text; never empty.
std::string hindsight_text(const energy::MeasuredJob& job,
                           const std::optional<Hindsight>& hindsight);

}  // namespace diapause::cli
