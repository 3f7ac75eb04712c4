// The published power fits under the published rule and under our measured policy. All of it is
// arithmetic: no power was measured here.
#pragma once

#include <string>
#include <vector>

#include "policy/throttle.hpp"

namespace diapause::published {

// One of the four cases: a phase on one of the two processors, with the ratio that the rule has for
// it.
struct Case {
  std::string phase;      // "compress", "write"
  std::string processor;  // like "Broadwell" or "Skylake"
  policy::PhaseKind kind;
  double rule;
  policy::PowerFit cpu;  // relative to the power at that chip's highest clock
};

// Reads the cases from the tables in python/diapause/study/published. Throws std::runtime_error,
// which names the file, if they cannot be read.
std::vector<Case> read_cases(const std::string& folder);

// The share of the time that scales with the clock, from both published slowdowns: the mean.
double published_phi();

// The node, if everything but the processor draws `rest` times what the processor draws at its base
// clock.
policy::NodePower node_of(const Case& which, double rest);

// Says what the measured policy decides on such a node, and the energy of `phases` phases under it
// over the same at the base clock, with its trials and comparisons.
struct Outcome {
  double ratio = 1;
  double energy = 1;
};
Outcome run_measured(const Case& which, double rest, int phases);

// Returns the tables of docs/throttling.md, in Markdown.
std::string tables(const std::vector<Case>& cases);

}  // namespace diapause::published
