// Whether a phase of a checkpoint runs at less than the base clock, and at how much less. Pure: the governor asks, and
// tells what came of it.
//
// Power saved is not energy saved: a slower phase lasts longer, and all of the node draws power meanwhile. Everything
// here is therefore said in joules of the node, over the same at the base clock.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "config/settings.hpp"
#include "policy/paired_trials.hpp"

namespace diapause::policy {

// What a phase does mostly. The published rule has a ratio for each.
enum class PhaseKind { compress, write };

// A phase that lasts less is never slowed: changing the clock of all cores, and back, would be a good part of it.
inline constexpr double kShortestPhase_s = 0.05;
// No lower ratio is ever chosen: the published fits end there.
inline constexpr double kLowestRatio = 0.5;

// Power of a processor at a clock of f GHz: a f^b + c (Wilkins 2023, Eq. 2.2), in any unit.
struct PowerFit {
  double a = 0, b = 0, c = 0;
  double base_ghz = 0;  // the clock that ratios refer to

  double at(double ratio) const;
};

// Power of a node.
struct NodePower {
  PowerFit cpu;
  double rest = 0;  // what everything else in it draws as long as the phase lasts, in the unit of the fit
};

// Time of a phase at `ratio` (above 0) of the base clock, over its time at the base clock: phi / ratio + 1 - phi, where
// phi is the share of the time that scales with the clock.
double slowdown(double phi, double ratio);

// The phi behind a slowdown that was observed at `ratio` (above 0, below 1); from 0 to 1, as noise may say otherwise.
double cpu_bound_share(double observed_slowdown, double ratio);

// Energy of a phase at `ratio`, over that at the base clock: slowdown times the ratio of the node's powers.
double energy_ratio(const NodePower& power, double phi, double ratio);

// The ratio from `lowest` to 1 with the least energy, to a thousandth. The highest of equals.
double best_ratio(const NodePower& power, double phi, double lowest);

struct PhaseAhead {
  PhaseKind kind = PhaseKind::write;
  std::uint64_t bytes = 0;                                 // it works on; 0 = as always
  double due_s = std::numeric_limits<double>::infinity();  // it has to be over by then
};

// Why a phase runs as it does.
enum class Why {
  off,
  duration_unknown,  // none like it was seen at the base clock yet
  too_short,
  no_time,            // slowed, it would take longer than it may
  rule,               // the fixed ratio
  trial,              // to compare with the base clock
  comparison,         // at the base clock, to compare with what was slowed
  power_unknown,      // nothing tells what the node draws
  saves,              // joules of the node
  cannot_be_told,     // whether it does: noise is larger than what is saved
  does_not_save_any,  // the same
  shared_cores,       // the program runs on them, too: for those who know where phases run
};
std::string_view why_text(Why why);  // "saves energy of the node"

struct Choice {
  double ratio = 1;
  Why why = Why::off;
};

// What one phase took.
struct PhaseSeen {
  double ratio = 1;  // it ran at, as far as is known
  std::uint64_t bytes = 0;
  double seconds = 0;
  std::optional<double> node_joules;  // measured, of the whole node; none = no counter
};

// Decides for the phases of one name, and learns from them. Not thread-safe.
//
// `fixed` takes the ratio of the settings. `measured` runs pairs of phases, one of each at the fixed ratio and the
// other at the base clock, and compares the joules of the node: measured ones, or by the times and the power of the
// node. It slows phases only if the joules saved exclude zero (paired_trials.hpp). Four pairs come one after the other;
// if they do not tell, a trial follows each sixteenth phase, until sixteen have told or cannot tell. While phases are
// slowed each sixteenth runs at the base clock, and its pair counts. An answer that nothing is saved stands for 64
// phases for each trial that it took. A phase whose time is a quarter off what was expected is followed by one at the
// base clock; if three in a row are off, conditions have changed and everything is forgotten.
class Throttle {
 public:
  explicit Throttle(const config::GovernorSettings& settings) : settings_(settings) {}

  Choice choose(const PhaseAhead& phase, const std::optional<NodePower>& power);
  void learn(const PhaseSeen& seen);

  // At the base clock, of a phase with so many bytes; none: nothing was seen.
  std::optional<double> expected_s(std::uint64_t bytes) const;
  // none: not seen at two clocks.
  std::optional<double> phi() const;

 private:
  struct Sample {
    double ratio;
    double seconds;  // per byte
  };
  using Samples = std::vector<Sample>;

  double fixed_ratio(PhaseKind kind) const;
  Choice choose_measured(const PhaseAhead& phase, double expected_s, const std::optional<NodePower>& power);
  double lowest_ratio(const PhaseAhead& phase, double expected_s) const;
  bool is_trial_next() const;
  void doubt(bool is_off);
  void pair_up(const PhaseSeen& seen, bool slowed);
  void forget();

  config::GovernorSettings settings_;
  Samples full_, slowed_;  // the last few
  PairedTrials trials_;
  std::optional<double> unpaired_full_, unpaired_slowed_;  // joules per byte of half a pair
  std::optional<NodePower> power_;                         // as told last
  double trial_ratio_ = 1;
  bool has_counter_ = false;       // joules were measured at least once
  std::uint32_t since_trial_ = 0;  // phases
  std::uint32_t trials_done_ = 0;
  std::uint32_t doubts_ = 0;  // phases in a row, up to the last, that took another time than expected
};

}  // namespace diapause::policy
