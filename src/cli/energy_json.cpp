#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/energy_advice.hpp"
#include "cli/energy_amounts.hpp"
#include "cli/energy_comparison.hpp"
#include "cli/energy_report.hpp"
#include "cli/hindsight.hpp"

namespace diapause::cli {

using json = nlohmann::ordered_json;

void put_joules(nlohmann::ordered_json& object, const Joules& joules) {
  if (joules.known > 0) {
    object["joules"] = joules.sum;
  } else if (joules.unknown > 0) {
    object["joules"] = nullptr;
  }
  if (const auto error = joules.uncertainty()) object["uncertainty_j"] = *error;
  if (joules.known > 0 && joules.doubted == joules.known) {
    object["uncertainty"] = {
        {"sampling_j", joules.sampling},
        {"sensor_j", joules.is_estimate() ? json(nullptr) : json(joules.sensor)},
        {"attribution_j", joules.attribution}};
  }
  if (joules.unknown > 0) object["unknown"] = joules.unknown;
  if (joules.absent > 0) object["absent"] = joules.absent;
}

namespace {

json sources_json(const EnergySummary& energy) {
  json sources = json::array();
  for (const EnergySource& one : energy.sources) {
    sources.push_back({{"domain", one.domain}, {"source", one.source}, {"kind", one.kind}});
  }
  return sources;
}

json or_null(std::optional<double> value) { return value ? json(*value) : json(nullptr); }

json open_ends_json(const EnergySummary& energy) {
  json ends = json::array();
  for (const StartEnds::OpenEnd& one : energy.open_ends) {
    ends.push_back({{"incarnation", one.incarnation},
                    {"was_closed", one.was_closed},
                    {"seconds", or_null(one.seconds)}});
  }
  return ends;
}

json whole_json(const NamedEnergy& job) {
  const EnergySummary& energy = job.energy;
  json one = {{"ledger", job.ledger},
              {"energy_lines", energy.energy_lines},
              {"damaged_lines", energy.damaged_lines},
              {"missing_lines", energy.missing_lines},
              {"open_ends", open_ends_json(energy)},
              {"lost_lines", energy.lost_lines},
              {"repeated_lines", energy.repeated_lines},
              {"incarnations", energy.incarnations},
              {"machines", energy.machines},
              {"unmetered", energy.unmetered},
              {"hosts", energy.hosts},
              {"total", energy.total},
              {"kind", energy.kind()},
              {"sources", sources_json(energy)},
              {"told_apart_by", energy.told_apart_by},
              {"left_out", energy.left_out},
              {"runtime_s", energy.seconds},
              {"gap_s", energy.gap_s},
              {"watts", or_null(energy.watts())},
              {"whole", json::object()},
              {"program", json::object()}};
  if (job.slurm) {
    one["slurm"] = {
        {"jobs", job.slurm->jobs}, {"joules", job.slurm->joules}, {"seconds", job.slurm->seconds}};
  }
  put_joules(one["whole"], energy.whole);
  put_joules(one["program"], energy.program);
  if (const auto is_shared = energy.is_shared()) {
    one["shared"] = {{"is_shared", *is_shared},
                     {"job_processor_s", energy.processors.job_s},
                     {"others_processor_s", energy.processors.others_s}};
    if (const auto part = energy.job_part()) put_joules(one["shared"], *part);
  }
  return one;
}

// Sets from where the joules of the total are known, as the CSV has it in every row.
void put_source(json& row, const EnergySummary& energy) {
  row["domain"] = energy.total;
  row["kind"] = energy.kind();
  row["source"] = fmt::format("{}", fmt::join(energy.total_sources(), "; "));
}

json domains_json(const EnergySummary& energy) {
  json domains = json::array();
  for (const auto& [domain, sum] : energy.domains) {
    json one = {{"domain", domain}, {"kind", kind_of(energy, domain)}, {"sources", json::array()}};
    for (const EnergySource& source : energy.sources) {
      if (source.domain == domain) one["sources"].push_back(source.source);
    }
    put_joules(one, sum.whole);
    one["is_in_total"] = is_covered_by(energy.total, domain);
    const auto percent = share_percent(sum.whole, energy);
    if (percent && one["is_in_total"]) one["percent"] = *percent;
    one["phases"] = json::object();
    put_joules(one["phases"], sum.phases);
    domains.push_back(std::move(one));
  }
  return domains;
}

json phases_json(const EnergySummary& energy) {
  json phases = json::array();
  for (const auto& [key, amount] : energy.phases) {
    json one = {{"version", key.version}, {"for", activity_of(key)}, {"level", key.level},
                {"phase", key.phase},     {"times", amount.times},   {"seconds", amount.seconds},
                {"bytes", amount.bytes}};
    put_source(one, energy);
    put_joules(one, amount.joules);
    if (const auto percent = share_percent(amount.joules, energy)) one["percent"] = *percent;
    if (const Slowed& slowed = amount.slowed; slowed.times > 0) {
      one["slowed"] = {{"times", slowed.times},
                       {"asked", slowed.asked},
                       {"obtained", slowed.obtained},
                       {"actuators", slowed.actuators}};
    }
    phases.push_back(std::move(one));
  }
  return phases;
}

json levels_json(const EnergySummary& energy) {
  json levels = json::array();
  for (const LevelSum& one : sums_of_levels(energy)) {
    const Amount sum = one.group.sum();
    json level = {{"for", one.of_restart ? "restart" : "checkpoint"},
                  {"level", one.level},
                  {"versions", one.group.versions()},
                  {"seconds", sum.seconds},
                  {"bytes", sum.bytes}};
    put_source(level, energy);
    put_joules(level, sum.joules);
    const Joules of_gb = per_gb(sum);
    level["j_per_gb"] = or_null(of_gb.complete());
    level["j_per_gb_off"] = or_null(of_gb.uncertainty());
    json parts = json::object();
    put_joules(parts, of_gb);
    if (parts.contains("uncertainty")) level["j_per_gb_uncertainty"] = parts["uncertainty"];
    levels.push_back(std::move(level));
  }
  return levels;
}

json advice_json(const NamedEnergy& job) {
  json list = json::array();
  for (const Advice& one : advice_for(job.energy, hindsight_of(job.measured))) {
    json advice = {{"what", one.what}, {"is_at_most", one.is_at_most}, {"how_sure", one.how_sure}};
    put_joules(advice, one.saves);
    if (const auto percent = share_percent(one.saves, job.energy)) advice["percent"] = *percent;
    list.push_back(std::move(advice));
  }
  return list;
}

json rework_json(const Rework& rework) {
  json one = {
      {"incarnation", rework.incarnation}, {"version", rework.version}, {"seconds", nullptr}};
  if (!rework.is_known) return one;
  one["seconds"] = rework.seconds;
  put_joules(one, rework.joules);
  if (rework.unaccounted_s) one["unaccounted_s"] = *rework.unaccounted_s;
  return one;
}

json hindsight_json(const energy::MeasuredJob& job) {
  const auto hindsight = hindsight_of(job);
  if (!hindsight) return nullptr;
  json one = {{"failures", hindsight->are_failures_observed ? "observed" : "told"},
              {"failures_observed", hindsight->failures},
              {"mtbf_s", 1 / hindsight->failures_per_s},
              {"work_s", hindsight->as_was.work_s},
              {"time_over_work", hindsight->cost.wall_per_work()},
              {"more_time", hindsight->more_time()},
              {"best",
               {{"work_s", hindsight->best.pattern.work_s},
                {"time_over_work", hindsight->best.wall_per_work()},
                {"levels", json::array()}}}};
  for (std::size_t i = 0; i < hindsight->best.levels.size(); ++i) {
    one["best"]["levels"].push_back({{"level", hindsight->best.levels[i].number},
                                     {"work_s", hindsight->best.pattern.period_work_s(i)}});
  }
  if (hindsight->has_powers) one["more_energy"] = hindsight->more_energy();
  return one;
}

}  // namespace

std::string energy_json(const NamedEnergy& job, std::span<const NamedEnergy> baselines) {
  json document = {{"schema", 1}};
  document.update(whole_json(job));
  document["phases"] = phases_json(job.energy);
  document["levels"] = levels_json(job.energy);
  if (job.energy.part.empty()) document["domains"] = domains_json(job.energy);
  document["rework"] = json::array();
  for (const Rework& rework : job.energy.rework) document["rework"].push_back(rework_json(rework));
  if (!job.energy.part.empty()) document["part"] = job.energy.part;
  if (job.energy.part.empty()) document["hindsight"] = hindsight_json(job.measured);
  if (job.energy.part.empty()) document["advice"] = advice_json(job);
  if (!baselines.empty()) {
    document["baseline"] = whole_json(baselines.front());
    for (const NamedEnergy& one : baselines.subspan(1))
      document["more_baselines"].push_back(whole_json(one));
    const Comparison with = compare(job.energy, summaries_of(baselines));
    const std::pair<const char*, const std::optional<Change>*> changes[] = {
        {"runtime", &with.runtime_change},
        {"watts", &with.watts_change},
        {"joules", &with.joules_change}};
    for (const auto& [name, change] : changes) {
      document["percent"][name] = *change ? json((*change)->percent) : json(nullptr);
      document["percent_off"][name] = *change ? or_null((*change)->off) : json(nullptr);
    }
  }
  return document.dump(2, ' ', false, json::error_handler_t::replace);
}

}  // namespace diapause::cli
