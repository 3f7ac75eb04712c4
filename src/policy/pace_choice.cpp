#include "policy/pace_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace diapause::policy {
namespace {

constexpr double kDiffers = 0.1;       // relative change of an input
constexpr double kWorthIt = 0.05;      // fraction of the cost of checkpoints and failures
constexpr double kSystemShare = 0.1;   // rate of these failures relative to all others
constexpr double kMostOneIn = 1e15;    // so that counts stay exact
constexpr std::size_t kMostNamed = 3;  // inputs named in a reason

struct Change {
  std::string text;
  double factor = 1;  // factor above 1 by which it has grown or shrunk
};

void compare(const std::string& what, const char* unit, double before, double now,
             std::vector<Change>& changes) {
  if (before == now) return;
  // Below a millisecond, or a milliwatt, a difference does not matter.
  constexpr double kNothing = 1e-3;
  const double factor = std::max(now, kNothing) / std::max(before, kNothing);
  changes.push_back({fmt::format("{}: {:.3g} {}, before {:.3g}", what, now, unit, before),
                     std::max(factor, 1 / factor)});
}

// Returns the changes, the largest first.
std::vector<Change> changes_between(const PaceInputs& before, const PaceInputs& now) {
  std::vector<Change> changes;
  for (std::size_t i = 0; i < now.levels.size(); ++i) {
    const model::Level& was = before.levels[i];
    const model::Level& is = now.levels[i];
    const std::string level = fmt::format("level {} ", is.number);
    compare(level + "blocks", "s", was.blocked_s, is.blocked_s, changes);
    compare(level + "works behind the program", "s", was.behind_s, is.behind_s, changes);
    compare(level + "restarts in", "s", was.restart_s, is.restart_s, changes);
    compare("mean time between failures for level " + std::to_string(is.number), "s",
            1 / was.failures_per_s, 1 / is.failures_per_s, changes);
  }
  compare("computing draws", "W", before.powers.compute_w, now.powers.compute_w, changes);
  compare("a checkpoint draws", "W", before.powers.checkpoint_w, now.powers.checkpoint_w, changes);
  std::ranges::sort(changes, [](const Change& a, const Change& b) { return a.factor > b.factor; });
  return changes;
}

bool has_same_levels(const PaceInputs& one, const PaceInputs& other) {
  return std::ranges::equal(
      one.levels, other.levels,
      [](const model::Level& a, const model::Level& b) { return a.number == b.number; });
}

std::string levels_text(const PaceInputs& inputs) {
  std::vector<int> numbers;
  for (const model::Level& level : inputs.levels) numbers.push_back(level.number);
  return fmt::format("{}", fmt::join(numbers, ", "));
}

std::string reason_of(const std::optional<PaceInputs>& before, const PaceInputs& now) {
  if (!before) return "the first choice of this start";
  if (!has_same_levels(*before, now))
    return fmt::format("the levels that can be taken are now {}", levels_text(now));
  std::vector<std::string> texts;
  for (const Change& change : changes_between(*before, now)) {
    if (texts.size() < kMostNamed) texts.push_back(change.text);
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

Pace pace_of(const model::Plan& plan, std::uint32_t number) {
  Pace pace;
  pace.number = number;
  pace.every_s = plan.pattern.work_s;
  double one_in = 1;
  for (std::size_t i = 0; i < plan.levels.size(); ++i) {
    one_in = std::min(kMostOneIn, one_in * plan.pattern.every[i]);
    pace.one_in[static_cast<std::size_t>(plan.levels[i].number)] =
        static_cast<std::uint64_t>(one_in);
  }
  return pace;
}

}  // namespace

FailureRates failure_rates(const config::FailureSettings& settings, std::size_t nodes) {
  FailureRates rates{};
  double others = 0;
  for (std::size_t level = 1; level < rates.size(); ++level) {
    if (settings.mtbf_s[level] > 0) rates[level] = 1 / settings.mtbf_s[level];
    if (level == 2 && settings.node_mtbf_s > 0)
      rates[level] = static_cast<double>(nodes) / settings.node_mtbf_s;
    if (level < 4) others += rates[level];
  }
  if (rates[4] == 0) rates[4] = kSystemShare * others;
  return rates;
}

std::optional<model::Plan> PaceChoice::best(const PaceInputs& inputs) const {
  if (settings_.goal == config::ScheduleGoal::mixed) {
    return model::best_plan_within(inputs.levels, inputs.powers, settings_.bound_percent / 100);
  }
  const bool by_time = settings_.goal == config::ScheduleGoal::time;
  return model::best_plan(inputs.levels, inputs.powers,
                          by_time ? model::Goal::time : model::Goal::energy);
}

PaceChoice::Value PaceChoice::value_of(const model::Cost& cost, const model::Powers& powers) const {
  if (settings_.goal == config::ScheduleGoal::time) return {cost.wall_per_work(), 1};
  return {cost.watts_per_work(powers), powers.compute_w};
}

bool PaceChoice::breaks_bound(const PaceInputs& inputs, const model::Cost& cost) const {
  if (settings_.goal != config::ScheduleGoal::mixed) return false;
  const auto shortest = model::best_plan(inputs.levels, inputs.powers, model::Goal::time);
  return shortest &&
         cost.wall_per_work() > shortest->wall_per_work() * (1 + settings_.bound_percent / 100);
}

std::optional<double> PaceChoice::saved_by(const model::Plan& best, const PaceInputs& now) const {
  if (!plan_ || !has_same_levels(*decided_, now)) return std::nullopt;
  const model::Cost as_before = model::cost_of(now.levels, plan_->pattern);
  const Value before = value_of(as_before, now.powers);
  const Value then = value_of(best.cost, now.powers);
  if (!std::isfinite(before.least)) return 1;
  return (before.least - then.least) / before.least;
}

std::optional<PaceDecision> PaceChoice::consider(PaceInputs now) {
  std::erase_if(now.levels, [](const model::Level& level) { return level.failures_per_s <= 0; });
  const bool is_as_before = considered_ && has_same_levels(*considered_, now);
  if (is_as_before) {
    const std::vector<Change> changes = changes_between(*considered_, now);
    if (changes.empty() || changes.front().factor < 1 + kDiffers) return std::nullopt;
  }
  considered_ = now;
  std::optional<model::Plan> plan = best(now);
  if (!plan) return std::nullopt;
  const std::optional<double> saved = saved_by(*plan, now);
  if (saved) {
    const Value value = value_of(plan->cost, now.powers);
    const bool is_worth_it = *saved * value.least > kWorthIt * (value.least - value.bare);
    if (!is_worth_it && !breaks_bound(now, model::cost_of(now.levels, plan_->pattern)))
      return std::nullopt;
  }
  PaceDecision decision{pace_of(*plan, ++number_), *plan, now.powers, reason_of(decided_, now),
                        saved.value_or(0)};
  decided_ = now;
  plan_ = std::move(plan);
  return decision;
}

}  // namespace diapause::policy
