// Prints a plan as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/planning.hpp"
#include "cli/quantities.hpp"
#include "cli/text.hpp"

namespace diapause::cli {
namespace {

using plan_json_t = nlohmann::ordered_json;

std::string share_text_of(double share) {
  return std::isfinite(share) ? fmt::format("{:.2f} %", share * 100) : "-";
}

struct PlanPart {
  const char* name;
  double seconds, joules;  // per second of useful work
};

std::vector<PlanPart> plan_parts_of(const model::Plan& plan, const model::Powers& powers) {
  const model::Times& times = plan.cost.times;
  const double work_s = plan.cost.work_s;
  const auto part = [&](const char* name, double seconds, double watts) {
    return PlanPart{name, seconds / work_s, seconds * watts / work_s};
  };
  std::vector<PlanPart> parts = {part("work", work_s, powers.compute_w),
                                 part("rework", plan.cost.rework_s(), powers.compute_w),
                                 part("checkpoints", times.checkpointing_s, powers.checkpoint_w),
                                 part("slowed by them", times.slowed_s, powers.compute_w),
                                 part("restarts", times.restarting_s, powers.restart_w),
                                 part("down", times.down_s, powers.idle_w)};
  // This work runs beside the program: it has joules and no time of its own.
  parts.push_back({"behind checkpoints", 0, times.behind_s * powers.behind_w / work_s});
  return parts;
}

// Returns the useful work between two checkpoints of exactly that level or a deeper one.
double period_s(const model::Plan& plan, std::size_t index) {
  return plan.pattern.period_work_s(index);
}

bool is_always_deeper(const model::Plan& plan, std::size_t index) {
  return index + 1 < plan.levels.size() && plan.pattern.every[index + 1] == 1;
}

std::string levels_table(const PlanReport& report) {
  Table table({{"level"},
               {"blocked", Align::right},
               {"behind", Align::right},
               {"restart", Align::right},
               {"mean time to failure", Align::right}});
  for (const model::Level& level : report.job.levels) {
    table.add({std::to_string(level.number), duration_text(level.blocked_s),
               duration_text(level.behind_s), duration_text(level.restart_s),
               duration_text(1 / level.failures_per_s)});
  }
  return table.text();
}

std::string intervals_table(const PlanReport& report) {
  std::vector<Table::Column> columns = {{"take level"}};
  for (const Schedule& schedule : report.schedules)
    columns.push_back({schedule.name, Align::right});
  Table table(columns);
  for (const model::Level& level : report.job.levels) {
    std::vector<std::string> row = {fmt::format("{} every", level.number)};
    for (const Schedule& schedule : report.schedules) {
      std::string cell = "never";
      for (std::size_t i = 0; i < schedule.plan.levels.size(); ++i) {
        if (schedule.plan.levels[i].number != level.number) continue;
        cell = is_always_deeper(schedule.plan, i) ? "as a deeper one"
                                                  : duration_text(period_s(schedule.plan, i));
      }
      row.push_back(cell);
    }
    table.add(row);
  }
  return table.text();
}

std::string shares_table(const PlanReport& report) {
  std::vector<Table::Column> columns = {{"of the whole"}};
  for (const Schedule& schedule : report.schedules) {
    columns.push_back({schedule.name + ": time", Align::right});
    columns.push_back({"joules", Align::right});
  }
  Table table(columns);
  std::vector<std::vector<PlanPart>> all;
  for (const Schedule& schedule : report.schedules)
    all.push_back(plan_parts_of(schedule.plan, report.job.powers));
  for (std::size_t row = 0; row < all[0].size(); ++row) {
    std::vector<std::string> cells = {all[0][row].name};
    for (std::size_t i = 0; i < all.size(); ++i) {
      const model::Plan& plan = report.schedules[i].plan;
      cells.push_back(share_text_of(all[i][row].seconds / plan.wall_per_work()));
      cells.push_back(
          share_text_of(all[i][row].joules / plan.cost.watts_per_work(report.job.powers)));
    }
    table.add(cells);
  }
  std::vector<std::string> last = {"an hour of work takes"};
  for (const Schedule& schedule : report.schedules) {
    last.push_back(duration_text(schedule.plan.wall_per_work() * 3600));
    last.push_back(
        "~ " + rounded_text(schedule.plan.cost.watts_per_work(report.job.powers) / 1000, 3, "kWh"));
  }
  table.add(last);
  return table.text() + kJoulesAre + "\n";
}

plan_json_t level_json(const model::Level& level) {
  return {{"level", level.number},
          {"blocked_s", level.blocked_s},
          {"behind_s", level.behind_s},
          {"slowed", level.slowed},
          {"restart_s", level.restart_s},
          {"downtime_s", level.downtime_s},
          {"failures_per_s", level.failures_per_s}};
}

plan_json_t plan_json_of(const model::Plan& plan, const model::Powers& powers) {
  plan_json_t intervals = plan_json_t::array();
  for (std::size_t i = 0; i < plan.levels.size(); ++i) {
    intervals.push_back({{"level", plan.levels[i].number},
                         {"every", plan.pattern.every[i]},
                         {"work_s", period_s(plan, i)},
                         {"always_deeper", is_always_deeper(plan, i)}});
  }
  plan_json_t parts = plan_json_t::object();
  const double seconds = plan.wall_per_work();
  const double joules = plan.cost.watts_per_work(powers);
  for (const PlanPart& part : plan_parts_of(plan, powers)) {
    parts[part.name] = {{"of_time", part.seconds / seconds}, {"of_energy", part.joules / joules}};
  }
  return {{"intervals", intervals},
          {"time_per_work", seconds},
          {"joules_per_work_s", joules},
          {"parts", parts}};
}

// Returns the estimate as text. A single run has no confidence interval.
std::string estimate_text(const simulate::Estimate& estimate, double minus) {
  const std::string mean = fmt::format("{:.2f}", (estimate.mean - minus) * 100);
  return estimate.count < 2 ? mean + " %"
                            : fmt::format("{} +- {:.2f} %", mean, estimate.half_width * 100);
}

std::string by_runs_text(const ByRuns& runs) {
  const simulate::Found& found = runs.found;
  Table table({{"by simulation"}, {"formula", Align::right}, {"best found", Align::right}});
  for (std::size_t i = 0; i < runs.levels.size(); ++i) {
    table.add({fmt::format("{} every", runs.levels[i].number),
               duration_text(runs.formula.period_work_s(i)),
               duration_text(found.pattern.period_work_s(i))});
  }
  table.add(
      {"longer than the work", estimate_text(found.start_value, 1), estimate_text(found.value, 1)});
  const bool is_better = found.saved.low() > 0;
  return table.text() +
         fmt::format("{} run{} with failures by {}: {}\n", runs.replicas,
                     runs.replicas == 1 ? "" : "s", printable(runs.failures),
                     is_better ? "it saves " + estimate_text(found.saved, 0) + " of the time"
                               : "none is better than the formula's for certain");
}

plan_json_t by_runs_json(const ByRuns& runs) {
  const auto estimate = [](const simulate::Estimate& one) {
    return plan_json_t{{"mean", one.mean}, {"half_width", one.half_width}};
  };
  plan_json_t intervals = plan_json_t::array();
  for (std::size_t i = 0; i < runs.levels.size(); ++i) {
    intervals.push_back({{"level", runs.levels[i].number},
                         {"every", runs.found.pattern.every[i]},
                         {"work_s", runs.found.pattern.period_work_s(i)},
                         {"formula_work_s", runs.formula.period_work_s(i)}});
  }
  return {{"failures", runs.failures},
          {"replicas", runs.replicas},
          {"intervals", intervals},
          {"time_per_work", estimate(runs.found.value)},
          {"formula_time_per_work", estimate(runs.found.start_value)},
          {"saved", estimate(runs.found.saved)}};
}

std::string notes_text(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += "\nnote: " + printable(note);
  return text + (notes.empty() ? "" : "\n");
}

// Returns each note once. Those that not all sizes have begin with the nodes that they are of.
std::vector<std::string> notes_of_sizes(const std::vector<SizeRow>& rows) {
  std::vector<std::string> notes;
  const auto add = [&](const std::string& note) {
    if (std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
  };
  for (const SizeRow& row : rows) {
    for (const std::string& note : row.notes) {
      const bool is_everywhere = std::ranges::all_of(rows, [&](const SizeRow& other) {
        return std::ranges::find(other.notes, note) != other.notes.end();
      });
      add(is_everywhere ? note : fmt::format("{} nodes: {}", row.nodes, note));
    }
  }
  return notes;
}

}  // namespace

std::string plan_text(const PlanReport& report) {
  const std::string bytes =
      report.job.bytes > 0 ? bytes_text(static_cast<std::uint64_t>(report.job.bytes)) + " protected"
                           : "an unknown size protected";
  std::string text =
      fmt::format("{} node{}, {}\n\n", report.job.nodes, report.job.nodes == 1 ? "" : "s", bytes);
  text += levels_table(report) + "\n";
  if (report.schedules.empty())
    return text + nothing_helps_text(report.job) + "\n" + notes_text(report.job.notes);
  text += intervals_table(report) + "\n" + shares_table(report) + "\n";
  if (!report.approximations.empty()) {
    Table table({{"one level"}, {"work between", Align::right}, {"takes longer", Align::right}});
    for (const Approximation& one : report.approximations) {
      table.add({one.name, duration_text(one.work_s), share_text_of(one.more_time)});
    }
    text += table.text() + "\n";
  }
  Table wrong({{"being wrong: " + report.schedules[0].name},
               {"time", Align::right},
               {"joules", Align::right}});
  for (const Wrong& one : report.wrong)
    wrong.add({one.what, "+" + share_text_of(one.more_time),
               fmt::format("{:+.2f} %", one.more_energy * 100)});
  Table matters({{"1 % more of"}, {"time", Align::right}, {"joules", Align::right}});
  for (const Sensitivity& one : report.sensitivities) {
    matters.add({one.input, fmt::format("{:+.4f} %", one.of_time),
                 fmt::format("{:+.4f} %", one.of_energy)});
  }
  text += wrong.text() + "\n" + matters.text();
  if (report.by_runs) text += "\n" + by_runs_text(*report.by_runs);
  return text + notes_text(report.job.notes);
}

std::string plan_json(const PlanReport& report) {
  const model::Powers& powers = report.job.powers;
  plan_json_t all = {
      {"schema", 1}, {"kind", "plan"}, {"nodes", report.job.nodes}, {"bytes", report.job.bytes}};
  all["joules_are"] = kJoulesAre;
  all["powers_w"] = {{"compute", powers.compute_w},
                     {"checkpoint", powers.checkpoint_w},
                     {"restart", powers.restart_w},
                     {"idle", powers.idle_w},
                     {"behind", powers.behind_w}};
  for (const model::Level& level : report.job.levels) all["levels"].push_back(level_json(level));
  all["schedules"] = plan_json_t::array();
  for (const Schedule& schedule : report.schedules) {
    plan_json_t one = plan_json_of(schedule.plan, powers);
    one["name"] = schedule.name;
    all["schedules"].push_back(one);
  }
  for (const Wrong& one : report.wrong) {
    all["wrong"].push_back(
        {{"what", one.what}, {"more_time", one.more_time}, {"more_energy", one.more_energy}});
  }
  for (const Sensitivity& one : report.sensitivities) {
    all["sensitivities"].push_back(
        {{"input", one.input}, {"of_time", one.of_time}, {"of_energy", one.of_energy}});
  }
  for (const Approximation& one : report.approximations) {
    all["approximations"].push_back(
        {{"name", one.name}, {"work_s", one.work_s}, {"more_time", one.more_time}});
  }
  if (report.by_runs) all["by_runs"] = by_runs_json(*report.by_runs);
  all["notes"] = report.job.notes;
  return all.dump(2, ' ', false, plan_json_t::error_handler_t::replace);
}

std::string sizes_text(const std::vector<SizeRow>& rows) {
  Table table({{"nodes", Align::right},
               {"mean time to failure", Align::right},
               {"interval", Align::right},
               {"work", Align::right},
               {"rework", Align::right},
               {"checkpoints", Align::right},
               {"restarts", Align::right},
               {"down", Align::right}});
  for (const SizeRow& row : rows) {
    std::vector<std::string> cells = {std::to_string(row.nodes), duration_text(row.mtbf_s)};
    if (!row.plan) {
      table.add({cells[0], cells[1], "never", "100.00 %", "-", "-", "-", "-"});
      continue;
    }
    const double wall = row.plan->wall_per_work();
    const auto parts = plan_parts_of(*row.plan, {});
    const auto share = [&](double seconds) { return share_text_of(seconds / wall); };
    cells.push_back(duration_text(row.plan->pattern.work_s));
    for (const double seconds :
         {parts[0].seconds, parts[1].seconds, parts[2].seconds + parts[3].seconds, parts[4].seconds,
          parts[5].seconds}) {
      cells.push_back(share(seconds));
    }
    table.add(cells);
  }
  return table.text() + notes_text(notes_of_sizes(rows));
}

std::string sizes_json(const std::vector<SizeRow>& rows) {
  plan_json_t all = {{"schema", 1}, {"kind", "sizes"}, {"sizes", plan_json_t::array()}};
  for (const SizeRow& row : rows) {
    plan_json_t one = {{"nodes", row.nodes}, {"mtbf_s", row.mtbf_s}};
    one["plan"] = row.plan ? plan_json_of(*row.plan, {}) : plan_json_t();
    all["sizes"].push_back(one);
  }
  all["notes"] = notes_of_sizes(rows);
  return all.dump(2, ' ', false, plan_json_t::error_handler_t::replace);
}

}  // namespace diapause::cli
