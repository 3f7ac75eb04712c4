// Which pace `schedule = "auto"` takes, and why. Pure: rank 0 gives it what checkpoints and failures cost as far as it
// knows by now, and it says whether to go on as before. It changes its mind slowly: not before what it is told differs
// by a tenth, and only where that is worth it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "config/settings.hpp"
#include "model/optimum.hpp"
#include "policy/pace.hpp"

namespace diapause::policy {

// By class: [1] a process, [2] a node, [3] several nodes, [4] the system. Per second, of the whole job.
using FailureRates = std::array<double, 5>;
// What the settings say. Failures of the system come a tenth as often as all others together where that is not known:
// no job stays without checkpoints of level 4.
FailureRates failure_rates(const config::FailureSettings& settings, std::size_t nodes);

// What a choice is made from.
struct PaceInputs {
  std::vector<model::Level> levels;  // that the job can take now, from the shallowest to the deepest
  model::Powers powers;
};

struct PaceDecision {
  Pace pace;
  model::Plan plan;
  model::Powers powers;
  std::string reason;
  double saves = 0;  // against the pace before, of the time or of the joules that the goal is about; 0.01: one percent
};

class PaceChoice {
 public:
  explicit PaceChoice(const config::AutoSchedule& settings) : settings_(settings) {}

  // None: go on as before. The decision's pace has a number, and no `since`.
  std::optional<PaceDecision> consider(PaceInputs now);

 private:
  // What the goal makes least, per useful work, and how much of it is not overhead.
  struct Value {
    double least, bare;
  };
  std::optional<model::Plan> best(const PaceInputs& inputs) const;
  Value value_of(const model::Cost& cost, const model::Powers& powers) const;
  bool breaks_bound(const PaceInputs& inputs, const model::Cost& cost) const;
  // How much the best plan saves; none: it is not worth it, or there is nothing to compare it with.
  std::optional<double> saved_by(const model::Plan& best, const PaceInputs& now) const;

  config::AutoSchedule settings_;
  std::optional<PaceInputs> considered_;  // of the last time that it was worth thinking about
  std::optional<PaceInputs> decided_;     // of the pace that is followed
  std::optional<model::Plan> plan_;
  std::uint32_t number_ = 0;
};

}  // namespace diapause::policy
