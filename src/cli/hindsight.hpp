// What the checkpoints of a job cost against the schedule that would have been best for what it turned out to be up
// against. Pure.
#pragma once

#include <optional>
#include <string>

#include "energy/measured_job.hpp"
#include "model/optimum.hpp"

namespace diapause::cli {

struct Hindsight {
  bool are_failures_observed = false;  // else they are those that the last choice of a schedule took
  double failures_per_s = 0;           // of all classes together
  model::Pattern as_was;               // means over the whole job, over best.levels
  model::Cost cost;                    // of it, in expectation
  model::Plan best;                    // by time
  model::Powers powers;                // all 1: nothing is known of them
  bool has_powers = false;

  double more_time() const { return cost.wall_per_work() / best.wall_per_work() - 1; }
  // Of the pattern of the least energy, which need not be `best`.
  double least_watts = 0;
  double more_energy() const { return cost.watts_per_work(powers) / least_watts - 1; }
};

// None where nothing failed and nobody said what might, or too few checkpoints were taken to speak of intervals.
std::optional<Hindsight> hindsight_of(const energy::MeasuredJob& job);

// Some lines; never empty.
std::string hindsight_text(const energy::MeasuredJob& job, const std::optional<Hindsight>& hindsight);

}  // namespace diapause::cli
