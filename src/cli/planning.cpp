#include "cli/planning.hpp"

#include <fmt/core.h>

#include <functional>

#include "model/one_level.hpp"

namespace diapause::cli {
namespace {

using model::Goal;
using model::Level;
using model::Pattern;

struct PerWork {
  double seconds, joules;
};

PerWork per_work(const std::vector<Level>& levels, const Pattern& pattern,
                 const model::Powers& powers) {
  const model::Cost cost = model::cost_of(levels, pattern);
  return {cost.wall_per_work(), cost.watts_per_work(powers)};
}

void add_wrong(PlanReport& report) {
  const model::Plan& plan = report.schedules[0].plan;
  const PerWork best = per_work(plan.levels, plan.pattern, report.job.powers);
  const auto add = [&](const char* what, const Pattern& pattern) {
    const PerWork now = per_work(plan.levels, pattern, report.job.powers);
    report.wrong.push_back({what, now.seconds / best.seconds - 1, now.joules / best.joules - 1});
  };
  for (const double factor : {0.5, 2.0}) {
    Pattern pattern = plan.pattern;
    pattern.work_s *= factor;
    add(factor < 1 ? "all intervals half as long" : "all intervals twice as long", pattern);
  }
  for (const double factor : {0.5, 2.0}) {
    // The schedule is made for failure rates other than the real ones.
    std::vector<Level> believed = plan.levels;
    for (Level& level : believed) level.failures_per_s *= factor;
    const auto misled = model::best_plan(believed, report.job.powers, Goal::time);
    if (misled)
      add(factor < 1 ? "half the failures expected" : "twice the failures expected",
          misled->pattern);
  }
}

void add_sensitivities(PlanReport& report) {
  const model::Plan& plan = report.schedules[0].plan;
  const PerWork base = per_work(plan.levels, plan.pattern, report.job.powers);
  constexpr double kStep = 0.01;
  const auto add = [&](const std::string& input, const std::vector<Level>& levels,
                       const model::Powers& powers) {
    const PerWork now = per_work(levels, plan.pattern, powers);
    report.sensitivities.push_back(
        {input, (now.seconds / base.seconds - 1) / kStep, (now.joules / base.joules - 1) / kStep});
  };
  const auto vary = [&](const char* what, double Level::*member) {
    for (std::size_t i = 0; i < plan.levels.size(); ++i) {
      if (plan.levels[i].*member == 0) continue;
      std::vector<Level> levels = plan.levels;
      levels[i].*member *= 1 + kStep;
      add(fmt::format("level {}: {}", levels[i].number, what), levels, report.job.powers);
    }
  };
  vary("failures", &Level::failures_per_s);
  vary("blocked time", &Level::blocked_s);
  vary("time behind", &Level::behind_s);
  vary("share slowed", &Level::slowed);
  vary("restart time", &Level::restart_s);
  vary("downtime", &Level::downtime_s);
  const auto vary_power = [&](const char* what, double model::Powers::*member) {
    model::Powers powers = report.job.powers;
    powers.*member *= 1 + kStep;
    add(what, plan.levels, powers);
  };
  vary_power("power computing", &model::Powers::compute_w);
  vary_power("power in checkpoints", &model::Powers::checkpoint_w);
  vary_power("power in restarts", &model::Powers::restart_w);
  vary_power("power behind checkpoints", &model::Powers::behind_w);
}

void add_approximations(PlanReport& report) {
  const model::Plan& plan = report.schedules[0].plan;
  if (plan.levels.size() != 1 || plan.levels[0].behind_s > 0) return;
  const Level& level = plan.levels[0];
  const model::OneLevel job{1 / level.failures_per_s, level.blocked_s, level.restart_s,
                            level.downtime_s};
  const auto add = [&](const char* name, double work_s) {
    report.approximations.push_back({name, work_s, model::time_excess(job, work_s)});
  };
  add("exact", model::time_optimal_work_s(job));
  add("Daly 2006", model::daly_work_s(job));
  add("Young 1974", model::young_work_s(job));
}

}  // namespace

std::string nothing_helps_text(const JobModel& job) {
  if (job.lacks_level == 0) return "nothing fails: checkpoints are of no use";
  return fmt::format(
      "no level of the job stands against what fails: its checkpoints are of no use; give --levels "
      "with {}",
      job.lacks_level);
}

PlanReport make_plan(const JobModel& job, double bound) {
  PlanReport report;
  report.job = job;
  auto plans = model::best_plans(job.levels, job.powers, bound);
  if (!plans) return report;
  report.schedules.push_back({"least time", std::move(plans->shortest)});
  report.schedules.push_back({"least energy", std::move(plans->cheapest)});
  report.schedules.push_back(
      {fmt::format("at most {:g} % longer", bound * 100), std::move(plans->mixed)});
  add_wrong(report);
  add_sensitivities(report);
  add_approximations(report);
  return report;
}

}  // namespace diapause::cli
