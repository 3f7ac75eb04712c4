#include "model/optimum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "model/search.hpp"

namespace diapause::model {
namespace {

constexpr double kMostEvery = 1e9;

// The quantity to minimize: seconds per useful work, plus a weight times joules per useful work.
struct Objective {
  const std::vector<Level>& levels;
  const Powers& powers;
  double of_seconds = 1;
  double of_joules = 0;

  double operator()(const Pattern& pattern) const {
    const Cost cost = cost_of(levels, pattern);
    const double value =
        (of_seconds * cost.times.wall_s() + of_joules * cost.times.joules(powers)) / cost.work_s;
    return std::isfinite(value) ? value : std::numeric_limits<double>::infinity();
  }
};

std::vector<Level> failing(const std::vector<Level>& levels) {
  std::vector<Level> kept;
  for (const Level& level : levels) {
    if (level.failures_per_s > 0) kept.push_back(level);
  }
  return kept;
}

// Returns the pattern by Young's rule, sqrt(2 C / rate) for each level alone. C is the cost in
// addition to that of the next shallower level.
Pattern young_pattern(const std::vector<Level>& levels) {
  std::vector<double> periods;
  double paid_s = 0;
  for (const Level& level : levels) {
    const double more_s = std::max(level.blocked_s + level.slowed * level.behind_s - paid_s, 1e-9);
    paid_s += more_s;
    periods.push_back(std::sqrt(2 * more_s / level.failures_per_s));
  }
  Pattern pattern;
  // A deeper level is never more frequent than a shallower one.
  for (std::size_t i = periods.size(); i-- > 1;)
    periods[i - 1] = std::min(periods[i - 1], periods[i]);
  pattern.work_s = periods[0];
  pattern.every.push_back(1);
  for (std::size_t i = 1; i < periods.size(); ++i) {
    pattern.every.push_back(std::clamp(periods[i] / periods[i - 1], 1.0, kMostEvery));
  }
  return pattern;
}

// Returns the shortest work that lets a checkpoint become durable before the next one of its level
// begins.
double least_work_s(const std::vector<Level>& levels, const Pattern& pattern) {
  double least_s = 1e-9;
  double checkpoints = 1;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    checkpoints *= pattern.every[i];
    least_s = std::max(least_s, (1 - levels[i].slowed) * levels[i].behind_s / checkpoints);
  }
  return least_s;
}

// The tolerance for comparing patterns; the chosen one is refined. The cost is flat around its
// minimum: being off by this much costs at most 1e-8 more.
constexpr double kRough = 1e-4;

// Optimizes the work within a factor of `reach` of the work that the pattern has.
Pattern with_best_work(const Objective& objective, Pattern pattern, double reach,
                       double tolerance) {
  const double least_s = least_work_s(objective.levels, pattern);
  const auto at = [&](double work_s) {
    pattern.work_s = work_s;
    return objective(pattern);
  };
  const double around_s = std::max(pattern.work_s, least_s);
  pattern.work_s = std::max(
      least_s, least_place(at, std::max(least_s, around_s / reach), around_s * reach, tolerance));
  return pattern;
}

// Optimizes one variable after the other, in several rounds. A shorter interval is combined with
// more checkpoints per checkpoint of the next level.
Pattern best_real(const Objective& objective, Pattern pattern) {
  double before = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 12; ++round) {
    pattern = with_best_work(objective, pattern, round == 0 ? 30 : 4, kRough);
    for (std::size_t i = 1; i < pattern.every.size(); ++i) {
      const double now = pattern.every[i];
      const auto at = [&](double every) {
        pattern.every[i] = every;
        pattern.work_s = std::max(pattern.work_s, least_work_s(objective.levels, pattern));
        return objective(pattern);
      };
      const double found = least_place(at, std::max(1.0, now / 8),
                                       std::clamp(now * 8, 1.0 + 1e-6, kMostEvery), 0.01);
      pattern.every[i] = found;
    }
    const double value = objective(pattern);
    if (!(value < before * (1 - 1e-6))) break;
    before = value;
  }
  return pattern;
}

struct Found {
  Pattern pattern;
  double value = std::numeric_limits<double>::infinity();
  // Numbers of checkpoints whose best work is known to be no better.
  std::set<std::vector<double>> tried = {};
};

void try_pattern(const Objective& objective, const Pattern& candidate, Found& best) {
  if (!best.tried.insert(candidate.every).second) return;
  const Pattern tuned = with_best_work(objective, candidate, 2, kRough);
  const double value = objective(tuned);
  if (!(value < best.value * (1 - 1e-12))) return;
  best.pattern = tuned;
  best.value = value;
}

// Tries steps up and down, of one and of an eighth, as long as they help.
Found best_near(const Objective& objective, Found best) {
  for (int round = 0; round < 20; ++round) {
    const double before = best.value;
    for (std::size_t i = 1; i < best.pattern.every.size(); ++i) {
      const double large = std::max(2.0, std::round(best.pattern.every[i] / 8));
      for (const double step : {-1.0, 1.0, -large, large}) {
        Pattern candidate = best.pattern;
        candidate.every[i] += step;
        if (candidate.every[i] >= 1) try_pattern(objective, candidate, best);
      }
    }
    if (!(best.value < before * (1 - 1e-7))) break;
  }
  best.pattern = with_best_work(objective, best.pattern, 1.2, 1e-7);
  return best;
}

// Tries all ways to round the numbers up or down, and then the neighbours of the best.
Found best_whole(const Objective& objective, const Pattern& real) {
  Found best{real};  // kept if every pattern has an infinite cost
  const std::size_t free = real.every.size() - 1;
  for (std::size_t ways = 0; ways < (std::size_t{1} << free); ++ways) {
    Pattern candidate = real;
    for (std::size_t i = 0; i < free; ++i) {
      double& every = candidate.every[i + 1];
      every = std::max(1.0, (ways >> i & 1) != 0 ? std::ceil(every) : std::floor(every));
    }
    try_pattern(objective, candidate, best);
  }
  return best_near(objective, best);
}

// Improves a plan with respect to another objective.
Plan improved(Plan plan, const Powers& powers, double of_seconds, double of_joules) {
  const Objective objective{plan.levels, powers, of_seconds, of_joules};
  const Pattern pattern = with_best_work(objective, plan.pattern, 4, kRough);
  plan.pattern = best_near(objective, {pattern, objective(pattern)}).pattern;
  plan.cost = cost_of(plan.levels, plan.pattern);
  return plan;
}

std::optional<Plan> least(const std::vector<Level>& all, const Powers& powers, double of_seconds,
                          double of_joules) {
  Plan plan;
  plan.levels = failing(all);
  if (plan.levels.empty()) return std::nullopt;
  const Objective objective{plan.levels, powers, of_seconds, of_joules};
  plan.pattern = best_whole(objective, best_real(objective, young_pattern(plan.levels))).pattern;
  plan.cost = cost_of(plan.levels, plan.pattern);
  return plan;
}

// Returns the plan with the least energy within the bound on the time.
Plan mixed_plan(const Plan& shortest, const Plan& cheapest, const Powers& powers,
                double most_longer) {
  const double most = shortest.wall_per_work() * (1 + most_longer);
  if (cheapest.wall_per_work() <= most) return cheapest;
  // Bisection finds the weight of a joule at which the time reaches the bound.
  const double scale = shortest.cost.wall_per_work() / shortest.cost.watts_per_work(powers);
  double low = 0;
  double high = 1;
  Plan best = shortest;
  for (int step = 0; step < 10; ++step) {
    const double weight = (low + high) / 2;
    Plan plan = improved(best, powers, 1 - weight, weight * scale);
    if (plan.wall_per_work() <= most) {
      low = weight;
      if (plan.cost.watts_per_work(powers) <= best.cost.watts_per_work(powers))
        best = std::move(plan);
    } else {
      high = weight;
    }
  }
  return best;
}

}  // namespace

std::optional<Plan> best_plan(const std::vector<Level>& levels, const Powers& powers, Goal goal) {
  const bool by_time = goal == Goal::time;
  return least(levels, powers, by_time ? 1 : 0, by_time ? 0 : 1);
}

std::optional<Plan> best_plan_within(const std::vector<Level>& levels, const Powers& powers,
                                     double most_longer) {
  auto plans = best_plans(levels, powers, most_longer);
  if (!plans) return std::nullopt;
  return std::move(plans->mixed);
}

std::optional<Plans> best_plans(const std::vector<Level>& levels, const Powers& powers,
                                double most_longer) {
  auto shortest = best_plan(levels, powers, Goal::time);
  auto cheapest = best_plan(levels, powers, Goal::energy);
  if (!shortest || !cheapest) return std::nullopt;
  Plan mixed = mixed_plan(*shortest, *cheapest, powers, most_longer);
  return Plans{std::move(*shortest), std::move(*cheapest), std::move(mixed)};
}

}  // namespace diapause::model
