// Chooses the pace of `schedule = "auto"`. The class is pure: rank 0 passes the costs of
// checkpoints and failures as they are known, and learns whether to change the pace. The pace
// changes slowly: only if the costs differ by a tenth, and only where a change is worthwhile.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "config/settings.hpp"
#include "model/optimum.hpp"
#include "policy/pace.hpp"

namespace diapause::policy {

// Failures per second of the whole job, by class: [1] a process, [2] a node, [3] several nodes, [4]
// the system.
using FailureRates = std::array<double, 5>;
// Returns the rates according to the settings. If the rate of system failures is unknown, it is a
// tenth of the rate of all others together, so that no job is without checkpoints of level 4.
FailureRates failure_rates(const config::FailureSettings& settings, std::size_t nodes);

// The inputs of a choice.
struct PaceInputs {
  // The levels that the job can take now, from the shallowest to the deepest.
  std::vector<model::Level> levels;
  model::Powers powers;
};

struct PaceDecision {
  Pace pace;
  model::Plan plan;
  model::Powers powers;
  std::string reason;
  // Compared with the former pace, in the time or joules that the goal is about; 0.01 is one
  // percent.
  double saves = 0;
};

class PaceChoice {
 public:
  explicit PaceChoice(const config::AutoSchedule& settings) : settings_(settings) {}

  // Returns nullopt to keep the pace. The pace of the decision has a number, and no `since`.
  std::optional<PaceDecision> consider(PaceInputs now);

 private:
  // The quantity that the goal minimizes, per useful work, and how much of it is not overhead.
  struct Value {
    double least, bare;
  };
  std::optional<model::Plan> best(const PaceInputs& inputs) const;
  Value value_of(const model::Cost& cost, const model::Powers& powers) const;
  bool breaks_bound(const PaceInputs& inputs, const model::Cost& cost) const;
  // Returns how much the best plan saves; nullopt if it is not worthwhile, or if there is nothing
  // to compare it with.
  std::optional<double> saved_by(const model::Plan& best, const PaceInputs& now) const;

  config::AutoSchedule settings_;
  std::optional<PaceInputs> considered_;  // the inputs of the last choice that was computed
  std::optional<PaceInputs> decided_;     // the inputs of the pace that is followed
  std::optional<model::Plan> plan_;
  std::uint32_t number_ = 0;
};

}  // namespace diapause::policy
