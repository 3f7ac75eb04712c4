#include "cli/simulation_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "cli/quantities.hpp"
#include "cli/text.hpp"
#include "simulate/statistics.hpp"

namespace diapause::cli {
namespace {

using simulate::Activity;
using simulate::Estimate;
using simulate::History;
using simulation_json_t = nlohmann::ordered_json;

// A quantity that every run has.
struct Measure {
  std::string name;
  std::string unit;  // "share", "s", "J", or empty for a count
  std::function<double(const History&)> of;
};

double seconds_in(const History& history, Activity activity) {
  return history.seconds[static_cast<std::size_t>(activity)];
}

double joules_in(const History& history, Activity activity) {
  return history.joules[static_cast<std::size_t>(activity)];
}

std::vector<Measure> time_measures() {
  std::vector<Measure> measures = {
      {"work", "share", [](const History& h) { return h.work_s / h.wall_s; }},
      {"rework", "share", [](const History& h) { return h.rework_s / h.wall_s; }}};
  for (const Activity activity : {Activity::checkpoint, Activity::slowed, Activity::restart,
                                  Activity::down, Activity::queue}) {
    measures.push_back(
        {std::string(simulate::activity_name(activity)), "share",
         [activity](const History& h) { return seconds_in(h, activity) / h.wall_s; }});
  }
  return measures;
}

// Returns the work's share of the computing time, by which the joules of computing are divided.
double work_share(const History& h) {
  return h.work_s + h.rework_s > 0 ? h.work_s / (h.work_s + h.rework_s) : 0;
}

std::vector<Measure> energy_measures() {
  std::vector<Measure> measures = {
      {"work", "share",
       [](const History& h) {
         return joules_in(h, Activity::compute) * work_share(h) / h.total_joules();
       }},
      {"rework", "share", [](const History& h) {
         return joules_in(h, Activity::compute) * (1 - work_share(h)) / h.total_joules();
       }}};
  for (const Activity activity :
       {Activity::checkpoint, Activity::slowed, Activity::restart, Activity::down}) {
    measures.push_back(
        {std::string(simulate::activity_name(activity)), "share",
         [activity](const History& h) { return joules_in(h, activity) / h.total_joules(); }});
  }
  measures.push_back(
      {"behind", "share", [](const History& h) { return h.behind_j / h.total_joules(); }});
  return measures;
}

std::vector<Measure> whole_measures(const SimulationSetup& setup) {
  std::vector<Measure> measures = {
      {"wall time", "s", [](const History& h) { return h.wall_s; }},
      {"useful work", "s", [](const History& h) { return h.work_s; }},
      {"time for a second of work", "", [](const History& h) { return h.wall_s / h.work_s; }},
      {"energy", "J", [](const History& h) { return h.total_joules(); }},
      {"starts from scratch", "",
       [](const History& h) { return 1.0 * static_cast<double>(h.from_scratch); }}};
  for (std::size_t i = 0; i <= setup.machine.classes.size(); ++i) {
    const bool is_record = i == setup.machine.classes.size();
    if (is_record && setup.machine.record.empty()) continue;
    const std::string name = is_record ? "record" : setup.machine.classes[i].name;
    measures.push_back({"failures: " + name, "",
                        [i](const History& h) { return static_cast<double>(h.failures[i]); }});
  }
  for (std::size_t i = 0; i < setup.job.levels.size(); ++i) {
    const std::string level = std::to_string(setup.job.levels[i].number);
    measures.push_back({"checkpoints of level " + level, "",
                        [i](const History& h) { return static_cast<double>(h.checkpoints[i]); }});
    measures.push_back({"restarts from level " + level, "",
                        [i](const History& h) { return static_cast<double>(h.restarts[i]); }});
  }
  return measures;
}

Estimate estimate_of(const Measure& measure, const std::vector<History>& histories) {
  std::vector<double> values;
  for (const History& history : histories) values.push_back(measure.of(history));
  return simulate::estimate(values);
}

std::string value_text(const Measure& measure, double value) {
  if (measure.unit == "share") return fmt::format("{:.3f} %", value * 100);
  if (measure.unit == "s") return duration_text(value);
  return fmt::format("{:.5g}{}", value, measure.unit.empty() ? "" : " " + measure.unit);
}

std::string measures_table(const std::string& head, const std::vector<Measure>& measures,
                           const std::vector<History>& histories) {
  Table table({{head}, {"mean", Align::right}, {"95 % of the mean lies within", Align::right}});
  for (const Measure& measure : measures) {
    const Estimate estimate = estimate_of(measure, histories);
    const double half = estimate.half_width;
    if (measure.unit == "J") {
      const bool is_told = estimate.count > 1 && half > 0;
      table.add({measure.name,
                 "~ " + (is_told ? to_the_digits_of(estimate.mean, half, "J")
                                 : rounded_text(estimate.mean, 3, "J")),
                 is_told ? "+- " + rounded_text(half, 2, "J") : "-"});
      continue;
    }
    table.add({measure.name, value_text(measure, estimate.mean),
               estimate.count < 2 ? "-" : "+- " + value_text(measure, half)});
  }
  return table.text();
}

simulation_json_t measures_json(const std::vector<Measure>& measures,
                                const std::vector<History>& histories) {
  simulation_json_t all = simulation_json_t::object();
  for (const Measure& measure : measures) {
    const Estimate estimate = estimate_of(measure, histories);
    all[measure.name] = {
        {"mean", estimate.mean}, {"half_width", estimate.half_width}, {"unit", measure.unit}};
  }
  return all;
}

// The deepest level may be taken only at the end of an allocation.
bool is_taken_by_pattern(const SimulationSetup& setup, std::size_t index) {
  return index < setup.job.pattern.every.size();
}

// Tells whether each checkpoint of that level is one of a deeper level, too.
bool is_taken_as_deeper(const SimulationSetup& setup, std::size_t index) {
  return is_taken_by_pattern(setup, index + 1) && setup.job.pattern.every[index + 1] == 1;
}

std::string schedule_text(const SimulationSetup& setup) {
  std::string text;
  for (std::size_t i = 0; i < setup.job.levels.size(); ++i) {
    text += fmt::format("{}level {} ", i == 0 ? "" : ", ", setup.job.levels[i].number);
    if (!is_taken_by_pattern(setup, i)) {
      text += "at the end of each allocation";
    } else if (is_taken_as_deeper(setup, i)) {
      text += "as a deeper one";
    } else {
      text += fmt::format("every {} of work", duration_text(setup.job.pattern.period_work_s(i)));
    }
  }
  return text;
}

std::size_t runs_short_of_work(const SimulationSetup& setup,
                               const std::vector<History>& histories) {
  if (!std::isfinite(setup.job.work_s)) return 0;
  return static_cast<std::size_t>(std::ranges::count_if(
      histories, [&](const History& h) { return h.work_s < setup.job.work_s; }));
}

}  // namespace

std::string simulation_text(const SimulationSetup& setup, const std::vector<History>& histories) {
  const std::size_t runs = histories.size();
  std::string text =
      fmt::format("{} run{} on {} node{}; {}\n\n", runs, runs == 1 ? "" : "s", setup.model.nodes,
                  setup.model.nodes == 1 ? "" : "s", schedule_text(setup));
  text += measures_table("share of time", time_measures(), histories) + "\n";
  text += measures_table("share of energy", energy_measures(), histories) + "\n";
  text += measures_table("in all", whole_measures(setup), histories) + kJoulesAre + "\n";
  if (setup.expected_wall_per_work) {
    text += fmt::format("\nby formula, a second of work takes {:.5g} s\n",
                        *setup.expected_wall_per_work);
  }
  if (const std::size_t count = runs_short_of_work(setup, histories); count > 0) {
    text += fmt::format(
        "\n{} of {} run{} ended after {}, before the {} of --work were done; --horizon lets runs "
        "take longer\n",
        count, runs, runs == 1 ? "" : "s", duration_text(setup.job.horizon_s),
        duration_text(setup.job.work_s));
  }
  for (const std::string& note : setup.model.notes) text += "\nnote: " + printable(note);
  return text + (setup.model.notes.empty() ? "" : "\n");
}

std::string simulation_json(const SimulationSetup& setup, const std::vector<History>& histories) {
  simulation_json_t all = {{"schema", 1},
                           {"kind", "simulation"},
                           {"runs", histories.size()},
                           {"nodes", setup.model.nodes}};
  for (std::size_t i = 0; i < setup.job.levels.size(); ++i) {
    simulation_json_t one = {{"level", setup.job.levels[i].number}};
    one["work_s"] = is_taken_by_pattern(setup, i)
                        ? simulation_json_t(setup.job.pattern.period_work_s(i))
                        : simulation_json_t();
    one["always_deeper"] = is_taken_as_deeper(setup, i);
    all["schedule"].push_back(one);
  }
  all["time"] = measures_json(time_measures(), histories);
  all["energy"] = measures_json(energy_measures(), histories);
  all["whole"] = measures_json(whole_measures(setup), histories);
  all["runs_short_of_work"] = runs_short_of_work(setup, histories);
  if (setup.expected_wall_per_work) all["expected_time_per_work"] = *setup.expected_wall_per_work;
  all["joules_are"] = kJoulesAre;
  all["notes"] = setup.model.notes;
  return all.dump(2, ' ', false, simulation_json_t::error_handler_t::replace);
}

std::string events_file(const History& history, const std::string& path) {
  // The name ends in .json or .csv, in letters of either case.
  if (path.ends_with('n') || path.ends_with('N')) {
    simulation_json_t events = simulation_json_t::array();
    for (const simulate::Event& event : history.events) {
      events.push_back({{"begin_s", event.begin_s},
                        {"end_s", event.end_s},
                        {"what", event.what},
                        {"level", event.level},
                        {"class", event.of_class},
                        {"node", event.first_node},
                        {"nodes", event.nodes}});
    }
    const simulation_json_t all = {
        {"schema", 1}, {"kind", "events"}, {"wall_s", history.wall_s}, {"events", events}};
    return all.dump() + "\n";
  }
  std::string text = "begin_s,end_s,what,level,class,node,nodes\n";
  for (const simulate::Event& event : history.events) {
    text += fmt::format("{:.6f},{:.6f},{},{},{},{},{}\n", event.begin_s, event.end_s, event.what,
                        event.level, event.of_class, event.first_node, event.nodes);
  }
  return text;
}

}  // namespace diapause::cli
