// Decides whether a phase of a checkpoint runs below the base clock, and by how much. The code is
// pure: the governor asks, and reports the outcome.
//
// Saving power is not saving energy: a slower phase lasts longer, and the whole node draws power
// meanwhile. Everything here is therefore expressed in joules of the node, relative to the base
// clock.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "config/settings.hpp"
#include "policy/paired_trials.hpp"

namespace diapause::policy {

// The dominant kind of work of a phase. The published rule has a ratio for each.
enum class PhaseKind { compress, write };

// A shorter phase is never slowed, because changing the clock of all cores and back would take a
// considerable part of it.
inline constexpr double kShortestPhase_s = 0.05;
// No lower ratio is ever chosen, because the published fits end there.
inline constexpr double kLowestRatio = 0.5;

// The power of a processor at a clock of f GHz is a f^b + c (Wilkins 2023, Eq. 2.2), in any unit.
struct PowerFit {
  double a = 0, b = 0, c = 0;
  double base_ghz = 0;  // the clock that ratios refer to

  double at(double ratio) const;
};

// Power of a node.
struct NodePower {
  PowerFit cpu;
  double rest = 0;  // power of the rest of the node during the phase, in the unit of the fit
};

// Returns the time of a phase at `ratio` (above 0) of the base clock, relative to its time at the
// base clock: phi / ratio + 1 - phi, where phi is the share of the time that scales with the clock.
double slowdown(double phi, double ratio);

// Returns the phi that explains a slowdown observed at `ratio` (above 0, below 1), limited to 0 to
// 1 because of noise.
double cpu_bound_share(double observed_slowdown, double ratio);

// Returns the energy of a phase at `ratio`, relative to the base clock: slowdown times the ratio of
// the node's powers.
double energy_ratio(const NodePower& power, double phi, double ratio);

// Returns the ratio from `lowest` to 1 with the least energy, to a thousandth. If several have the
// least energy, it is the highest of them.
double best_ratio(const NodePower& power, double phi, double lowest);

struct PhaseAhead {
  PhaseKind kind = PhaseKind::write;
  std::uint64_t bytes = 0;  // bytes that it works on; 0 stands for the usual number
  double due_s = std::numeric_limits<double>::infinity();  // seconds until it must be over
};

// The reason for the clock of a phase.
enum class Why {
  off,
  duration_unknown,  // no similar phase was seen at the base clock yet
  too_short,
  no_time,            // slowed, it would take longer than allowed
  rule,               // the fixed ratio applies
  trial,              // to compare with the base clock
  comparison,         // at the base clock, to compare with slowed phases
  power_unknown,      // the power of the node is unknown
  saves,              // slowing saves joules of the node
  cannot_be_told,     // noise is larger than the saving
  does_not_save_any,  // slowing saves no joules of the node
  shared_cores,  // the program runs on the same cores; set by callers that know where phases run
};
std::string_view why_text(Why why);  // a text like "saves energy of the node"

struct Choice {
  double ratio = 1;
  Why why = Why::off;
};

// The observed values of one phase.
struct PhaseSeen {
  double ratio = 1;  // the ratio that it ran at, as far as is known
  std::uint64_t bytes = 0;
  double seconds = 0;
  // Energy of the whole node as measured; empty without a counter.
  std::optional<double> node_joules;
};

// Decides for the phases of one name, and learns from them. Not thread-safe.
//
// `fixed` uses the ratio of the settings. `measured` runs pairs of phases, one at the fixed ratio
// and one at the base clock, and compares the joules of the node, either measured or derived from
// the times and the power of the node. It slows phases only if the interval of the saving excludes
// zero (paired_trials.hpp). The first four pairs follow directly one after the other. If they do
// not decide, a trial follows every sixteenth phase, until sixteen pairs have decided or remain
// undecided. While phases are slowed, every sixteenth runs at the base clock, and its pair counts.
// The answer that nothing is saved is kept for 64 phases for each trial that it took. A phase whose
// time is a quarter off the expected time is followed by one at the base clock; if three in a row
// are off, conditions have changed and everything is forgotten; trials that led to nothing are then
// followed by the same rest.
class Throttle {
 public:
  explicit Throttle(const config::GovernorSettings& settings) : settings_(settings) {}

  Choice choose(const PhaseAhead& phase, const std::optional<NodePower>& power);
  void learn(const PhaseSeen& seen);

  // Returns the time at the base clock of a phase with so many bytes; nullopt if none was seen.
  std::optional<double> expected_s(std::uint64_t bytes) const;
  // Returns the share that scales with the clock; nullopt before two clocks were seen.
  std::optional<double> phi() const;

 private:
  struct Sample {
    double ratio;
    double seconds;  // for each byte
  };
  using Samples = std::vector<Sample>;

  double fixed_ratio(PhaseKind kind) const;
  Choice choose_measured(const PhaseAhead& phase, double expected_s,
                         const std::optional<NodePower>& power);
  double lowest_ratio(const PhaseAhead& phase, double expected_s) const;
  bool is_trial_next() const;
  void doubt(bool is_off);
  void pair_up(const PhaseSeen& seen, bool slowed);
  void forget();

  config::GovernorSettings settings_;
  Samples full_, slowed_;  // the most recent ones
  PairedTrials trials_;
  std::optional<double> unpaired_full_, unpaired_slowed_;  // joules per byte of half a pair
  std::optional<NodePower> power_;                         // the powers that were last reported
  double trial_ratio_ = 1;
  bool has_counter_ = false;       // joules were measured at least once
  std::uint32_t since_trial_ = 0;  // a number of phases
  std::uint32_t trials_done_ = 0;
  std::uint32_t rest_ = 0;  // number of phases before the next trial
  // Consecutive phases, up to the last, that took another time than expected.
  std::uint32_t doubts_ = 0;
};

}  // namespace diapause::policy
