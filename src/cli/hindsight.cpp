#include "cli/hindsight.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "cli/quantities.hpp"
#include "cli/text.hpp"
#include "model/rates.hpp"

namespace diapause::cli {
namespace {

constexpr std::size_t kLeastCheckpoints = 3;
constexpr int kDigits = 2;
// By these factors a rate may be off, two-sided 95 %, that 1, 2, ... failures tell: from the limits
// of the mean of a Poisson distribution. More failures tell it better than to a factor of 2.
constexpr double kFactors[] = {40, 8.3, 4.9, 3.7, 3.1, 2.7, 2.5, 2.3, 2.2, 2.1};

// Returns the failure rates by the level that a failure needs: from the last choice of a schedule,
// or else as observed.
std::array<double, 6> failure_rates_of(const energy::MeasuredJob& job, bool& are_observed) {
  std::array<double, 6> rates{};
  are_observed =
      std::ranges::none_of(job.levels, [](const auto& level) { return level.mtbf_s.has_value(); });
  for (std::size_t level = 1; level < rates.size(); ++level) {
    const energy::MeasuredLevel& seen = job.levels[level];
    if (seen.mtbf_s) rates[level] = 1 / *seen.mtbf_s;
    if (are_observed && job.ran_s > 0)
      rates[level] = static_cast<double>(seen.failures) / job.ran_s;
  }
  return rates;
}

// Returns the levels that the job has taken, with the failures that they recover from. Failures of
// a class deeper than the deepest level led to a start from scratch, and count for that level.
std::vector<model::Level> levels_of(const energy::MeasuredJob& job,
                                    const std::array<double, 6>& rates) {
  std::vector<model::Level> levels;
  double passed_on = 0;
  for (std::size_t number = 1; number < job.levels.size(); ++number) {
    const energy::MeasuredLevel& seen = job.levels[number];
    passed_on += rates[number];
    if (!seen.with_room_s) continue;
    model::Level level;
    level.number = static_cast<int>(number);
    level.blocked_s = *seen.with_room_s;
    level.behind_s = seen.behind_s.value_or(0);
    level.slowed = level.behind_s > 0 ? model::kAssumedSlowed : 0;
    level.restart_s = seen.restart_s.value_or(level.blocked_s + level.behind_s);
    level.failures_per_s = std::exchange(passed_on, 0);
    levels.push_back(level);
  }
  if (!levels.empty()) levels.back().failures_per_s += passed_on;
  return levels;
}

// Returns the levels with what checkpoints cost at the intervals at which they were taken: the
// program also waited for room if the versions before were still in flight.
std::vector<model::Level> as_taken(std::vector<model::Level> levels,
                                   const energy::MeasuredJob& job) {
  for (model::Level& level : levels) {
    const energy::MeasuredLevel& seen = job.levels[static_cast<std::size_t>(level.number)];
    level.blocked_s = seen.blocked_s.value_or(level.blocked_s);
  }
  return levels;
}

// Returns the mean work between checkpoints, and of how many checkpoints one had each level or a
// deeper one.
model::Pattern pattern_of(const energy::MeasuredJob& job, const std::vector<model::Level>& levels) {
  std::vector<double> so_deep;
  for (const model::Level& level : levels) {
    double count = 0;
    for (std::size_t deeper = static_cast<std::size_t>(level.number); deeper < job.levels.size();
         ++deeper) {
      count += static_cast<double>(job.levels[deeper].checkpoints);
    }
    so_deep.push_back(count);
  }
  model::Pattern pattern;
  pattern.work_s = (job.ran_s - job.blocked_s - job.restarting_s) / so_deep[0];
  pattern.every.push_back(1);
  for (std::size_t i = 1; i < so_deep.size(); ++i)
    pattern.every.push_back(so_deep[i - 1] / so_deep[i]);
  return pattern;
}

}  // namespace

std::optional<Hindsight> hindsight_of(const energy::MeasuredJob& job) {
  Hindsight hindsight;
  std::vector<model::Level> levels =
      levels_of(job, failure_rates_of(job, hindsight.are_failures_observed));
  std::size_t checkpoints = 0;
  for (const energy::MeasuredLevel& level : job.levels) checkpoints += level.checkpoints;
  for (const energy::MeasuredLevel& level : job.levels) hindsight.failures += level.failures;
  for (const model::Level& level : levels) hindsight.failures_per_s += level.failures_per_s;
  if (checkpoints < kLeastCheckpoints || hindsight.failures_per_s <= 0) return std::nullopt;
  hindsight.as_was = pattern_of(job, levels);
  if (!(hindsight.as_was.work_s > 0)) return std::nullopt;
  hindsight.cost = model::cost_of(as_taken(levels, job), hindsight.as_was);
  hindsight.has_powers = job.compute_w.has_value();
  if (hindsight.has_powers) {
    const double waiting_w = job.checkpoint_w.value_or(*job.compute_w);
    hindsight.powers = {*job.compute_w, waiting_w, waiting_w, waiting_w, 0};
  }
  auto plans = model::best_plans(levels, hindsight.powers, 0);
  if (!plans || !std::isfinite(hindsight.cost.wall_per_work())) return std::nullopt;
  hindsight.best = std::move(plans->shortest);
  hindsight.cheapest = std::move(plans->cheapest);
  hindsight.least_watts = hindsight.cheapest.cost.watts_per_work(hindsight.powers);
  return hindsight;
}

std::string failures_text(const Hindsight& hindsight) {
  const double mtbf_s = 1 / hindsight.failures_per_s;
  if (!hindsight.are_failures_observed)
    return fmt::format("a failure every {} (as was told)", duration_text(mtbf_s));
  const std::string every =
      fmt::format("a failure every {} (of {} failure{}", duration_text(mtbf_s, kDigits),
                  hindsight.failures, hindsight.failures == 1 ? "" : "s");
  if (hindsight.failures == 0 || hindsight.failures > std::size(kFactors)) return every + ")";
  return every + fmt::format(": known to a factor of {})", kFactors[hindsight.failures - 1]);
}

std::string hindsight_text(const energy::MeasuredJob& job,
                           const std::optional<Hindsight>& hindsight) {
  if (!hindsight) {
    return fmt::format(
        "in hindsight: no failure came and none was told of, or too few checkpoints were taken to "
        "speak of intervals; "
        "checkpoints blocked {} of {}\n",
        duration_text(job.blocked_s), duration_text(job.ran_s));
  }
  const Hindsight& was = *hindsight;
  const auto percent = [](double share) {
    return std::abs(share) < 5e-5 ? "0.00 %" : rounded_text(share * 100, kDigits, "%");
  };
  const auto overhead = [&](const model::Cost& cost) { return percent(cost.wall_per_work() - 1); };
  std::string text = fmt::format(
      "in hindsight, with {}: checkpoints every {} of work cost {} of it in expectation, failures "
      "included; every {} would be best and cost {}",
      failures_text(was), duration_text(was.as_was.work_s), overhead(was.cost),
      duration_text(was.best.pattern.work_s, kDigits), overhead(was.best.cost));
  text +=
      fmt::format("\nthe schedule cost {} more time than the best one", percent(was.more_time()));
  if (was.has_powers)
    text += fmt::format(", and {} more energy than the cheapest one", percent(was.more_energy()));
  for (std::size_t i = 1; i < was.best.levels.size(); ++i) {
    text +=
        fmt::format("{}level {} every {}", i == 1 ? "; best: " : ", ", was.best.levels[i].number,
                    duration_text(was.best.pattern.period_work_s(i), kDigits));
  }
  return text + "\n";
}

}  // namespace diapause::cli
