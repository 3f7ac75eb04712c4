#include "cli/energy_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/energy_advice.hpp"
#include "cli/energy_comparison.hpp"
#include "cli/hindsight.hpp"
#include "cli/text.hpp"
#include "energy/total.hpp"

namespace diapause::cli {
namespace {

using json = nlohmann::ordered_json;

// In the order of docs/energy-account.md; what a later version of the library adds comes behind.
constexpr std::string_view kPhases[] = {"wait",   "capture", "drain",   "keep",    "partner",
                                        "parity", "encode",  "global",  "publish", "inventory",
                                        "verify", "fetch",   "rebuild", "restore"};

// Where the uncertainty is as large as the number, all that is known is what it is below.
std::optional<double> only_bound(const Joules& joules) {
  const auto error = joules.uncertainty();
  if (!error || *error == 0 || *error < joules.sum || joules.is_partial()) return std::nullopt;
  return std::max(0.0, joules.sum + *error);
}

}  // namespace

std::string joules_text(const Joules& joules) {
  if (const auto bound = only_bound(joules)) return "< " + rounded_text(*bound, 2, "J");
  if (joules.known == 0) return joules.unknown > 0 ? "unknown" : "-";
  const std::string at_least = joules.is_partial() ? ">= " : "";
  if (joules.is_estimate()) return at_least + "~ " + rounded_text(joules.sum, 2, "J");
  return at_least + value_text(joules.sum, joules.uncertainty().value_or(0), "J");
}

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

std::optional<double> share_percent(const Joules& joules, const EnergySummary& energy) {
  const auto part = joules.value();
  const auto whole = energy.whole.value();
  return part && whole && *whole > 0 ? std::optional(*part / *whole * 100) : std::nullopt;
}

std::string share_text(const Joules& joules, const EnergySummary& energy) {
  const auto percent = share_percent(joules, energy);
  if (!percent) return "-";
  const auto bound = only_bound(joules);
  return bound ? fmt::format("< {:.2f} %", std::min(*bound / *energy.whole.value() * 100, 100.0))
               : fmt::format("{:.2f} %", *percent);
}

std::string change_text(const std::optional<Change>& change) {
  if (!change) return "-";
  std::string text = fmt::format("{:+.1f} %", change->percent);
  if (change->off) text += fmt::format(" +- {:.1f} %", *change->off);
  return text + (change->is_told_apart() == false ? ": not told apart" : "");
}

std::string unit_text(std::optional<double> value, const char* unit) {
  return value ? fmt::format("{:.2f} {}", *value, unit) : "-";
}

const char* activity_of(const PhaseKey& key) { return key.of_restart ? "restart" : "checkpoint"; }

std::string level_text(const PhaseKey& key) {
  if (key.of_restart) return "restart";
  return key.level == 0 ? "of no one level" : fmt::format("level {}", key.level);
}

Table::Column right(const char* head) { return {head, Align::right}; }

Table table_of(std::vector<Table::Column> columns) {
  for (const char* const head : {"SECONDS", "BYTES", "ENERGY", "OF ALL"})
    columns.push_back(right(head));
  return Table(std::move(columns));
}

void add_amount(Table& table, std::vector<std::string> row, const Amount& amount,
                const EnergySummary& energy) {
  row.insert(row.end(), {fmt::format("{:.3f}", amount.seconds), bytes_text(amount.bytes),
                         joules_text(amount.joules), share_text(amount.joules, energy)});
  table.add(std::move(row));
}

// Phases put together. Those of one version are about the same bytes: the most of them count.
class Group {
 public:
  void add(const PhaseKey& key, const Amount& amount) {
    sum_.add(amount);
    std::uint64_t& bytes = bytes_[key.version];
    bytes = std::max(bytes, amount.bytes);
  }
  std::size_t versions() const { return bytes_.size(); }
  Amount sum() const {
    Amount sum = sum_;
    sum.bytes = 0;
    for (const auto& [version, bytes] : bytes_) sum.add({0, 0, bytes, {}});
    return sum;
  }

 private:
  Amount sum_;
  std::map<std::uint64_t, std::uint64_t> bytes_;  // by version
};

std::string by_phase(const EnergySummary& energy) {
  std::map<std::pair<std::size_t, std::string>, Amount> sums;
  for (const auto& [key, amount] : energy.phases) {
    const auto place =
        std::find(std::begin(kPhases), std::end(kPhases), key.phase) - std::begin(kPhases);
    sums[{static_cast<std::size_t>(place), key.phase}].add(amount);
  }
  Table table = table_of({{"PHASE"}, right("TIMES")});
  for (const auto& [key, sum] : sums) {
    add_amount(table, {printable(key.second), fmt::format("{}", sum.times)}, sum, energy);
  }
  table.add(
      {"program", "", "", "", joules_text(energy.program), share_text(energy.program, energy)});
  table.add({"whole job", "", "", "", joules_text(energy.whole), share_text(energy.whole, energy)});
  return table.text();
}

struct LevelSum {
  std::string name;
  std::uint64_t level = 0;
  bool of_restart = false;
  Group group;
};

std::vector<LevelSum> sums_of_levels(const EnergySummary& energy) {
  std::map<std::pair<bool, std::uint64_t>, LevelSum> sums;
  for (const auto& [key, amount] : energy.phases) {
    const std::uint64_t level = key.of_restart ? 0 : key.level;
    LevelSum& sum =
        sums.try_emplace({key.of_restart, level}, level_text(key), level, key.of_restart)
            .first->second;
    sum.group.add(key, amount);
  }
  std::vector<LevelSum> list;
  for (auto& [place, sum] : sums) list.push_back(std::move(sum));
  return list;
}

// The joules of 10^9 protected bytes.
Joules per_gb(const Amount& amount) {
  Joules joules = amount.joules;
  const double gb = static_cast<double>(amount.bytes) * 1e-9;
  if (!(gb > 0)) return {};
  joules.sum /= gb;
  joules.sampling /= gb;
  joules.sensor /= gb;
  joules.attribution /= gb;
  return joules;
}

std::string by_level(const EnergySummary& energy) {
  Table table({{"LEVEL"},
               right("VERSIONS"),
               right("SECONDS"),
               right("BYTES"),
               right("ENERGY"),
               right("OF ALL"),
               right("FOR A GB")});
  for (const LevelSum& one : sums_of_levels(energy)) {
    const Amount sum = one.group.sum();
    table.add({one.name, fmt::format("{}", one.group.versions()),
               fmt::format("{:.3f}", sum.seconds), bytes_text(sum.bytes), joules_text(sum.joules),
               share_text(sum.joules, energy), joules_text(per_gb(sum))});
  }
  return table.text();
}

std::string by_version(const EnergySummary& energy) {
  std::map<std::pair<std::uint64_t, std::string>, Group> groups;
  for (const auto& [key, amount] : energy.phases)
    groups[{key.version, activity_of(key)}].add(key, amount);
  Table table = table_of({right("VERSION"), {"FOR"}});
  for (const auto& [place, group] : groups) {
    add_amount(table, {fmt::format("{}", place.first), place.second}, group.sum(), energy);
  }
  return table.text();
}

std::string source_text(const EnergySummary& energy) {
  if (energy.total.empty()) return "no source";
  return printable(fmt::format("{} ({}: {})", energy.total, energy.kind(),
                               fmt::join(energy.total_sources(), ", ")));
}

std::vector<EnergySummary> summaries_of(std::span<const NamedEnergy> jobs) {
  std::vector<EnergySummary> summaries;
  for (const NamedEnergy& job : jobs) summaries.push_back(job.energy);
  return summaries;
}

std::string whole_text(const EnergySummary& energy, std::span<const NamedEnergy> baselines) {
  if (baselines.empty()) {
    Table table({{"WHOLE JOB"}, right("")});
    table.add({"runtime", unit_text(energy.seconds, "s")});
    table.add({"average power", unit_text(energy.watts(), "W")});
    table.add({"energy", joules_text(energy.whole)});
    return table.text();
  }
  const Comparison with = compare(energy, summaries_of(baselines));
  const bool is_one = baselines.size() == 1;
  const std::string head =
      is_one ? "BASELINE" : fmt::format("MEAN OF {} BASELINES", baselines.size());
  Table table({{"WHOLE JOB"}, right(""), {head, Align::right}, right("CHANGE")});
  table.add({"runtime", unit_text(energy.seconds, "s"), unit_text(with.seconds, "s"),
             change_text(with.runtime_change)});
  table.add({"average power", unit_text(energy.watts(), "W"), unit_text(with.watts, "W"),
             change_text(with.watts_change)});
  table.add({"energy", joules_text(energy.whole),
             is_one ? joules_text(baselines.front().energy.whole) : unit_text(with.joules, "J"),
             change_text(with.joules_change)});
  return table.text();
}

// By phase: how often, and how far.
std::string slowed_text(const EnergySummary& energy) {
  std::map<std::string, Amount> sums;
  for (const auto& [key, amount] : energy.phases) sums[key.phase].add(amount);
  std::string text;
  for (const auto& [phase, sum] : sums) {
    const Slowed& slowed = sum.slowed;
    if (slowed.times == 0) continue;
    text += fmt::format(
        "{} of {} times {} ran at {:.3f} of the base clock or more ({:.3f} asked for; actuator: "
        "{})\n",
        slowed.times, sum.times, printable(phase), slowed.obtained, slowed.asked,
        printable(fmt::format("{}", fmt::join(slowed.actuators, ", "))));
  }
  return text;
}

// By cause: samples apart in time, the source itself, who is charged.
std::string uncertainty_text(const EnergySummary& energy) {
  const auto parts = [](const char* what, const Joules& joules) {
    const std::string sensor =
        joules.is_estimate() ? "not known" : rounded_text(joules.sensor, 2, "J");
    return fmt::format(
        "off by at most, {}: {} as samples are apart, {} by the source itself, {} by who is "
        "charged\n",
        what, rounded_text(joules.sampling, 2, "J"), sensor,
        rounded_text(joules.attribution, 2, "J"));
  };
  if (energy.whole.known == 0 || energy.whole.doubted == 0) return "";
  std::string text = parts("whole job", energy.whole);
  if (const Joules phases = energy.all_phases().joules; phases.doubted > 0)
    text += parts("its phases", phases);
  if (energy.whole.is_estimate()) {
    text +=
        "energies with ~ are estimates without a bound, as nobody knows how far their source is "
        "off; shares and\n"
        "comparisons of runs on one machine are surer\n";
  }
  for (const EnergySource& one : energy.sources) {
    if (!energy.is_of_total(one) || one.accuracy.empty()) continue;
    text += printable(fmt::format("{} {}: {}", one.source, one.domain, one.accuracy)) + "\n";
  }
  return text;
}

// Sources that tell of what the total does not have, and boards of which none tells.
std::string left_out_text(const EnergySummary& energy) {
  std::string text;
  for (const std::string& boards : energy.left_out) text += printable(boards) + "\n";
  if (energy.total.empty() || energy.total == "mixed" || !energy.part.empty()) return text;
  for (const std::string& parts : energy.told_apart_by) {
    text += printable(fmt::format(
                "phases are told apart by {}, calibrated against the slower meter of the total",
                parts)) +
            "\n";
  }
  for (const EnergySource& one : energy.sources) {
    const auto* const name = std::ranges::find(energy::kDomainNames, one.domain);
    if (name == energy::kDomainNames.end() || *name == "other") continue;
    const auto domain = static_cast<energy::Domain>(name - energy::kDomainNames.begin());
    if (energy::is_covered(energy.total, domain)) continue;
    text += printable(fmt::format("seen, and not in the total: {} ({}: {})", one.domain, one.kind,
                                  one.source)) +
            "\n";
  }
  return text;
}

// Of a node that other programs used too.
std::string sharing_text(const EnergySummary& energy) {
  if (!energy.is_shared().value_or(false)) return "";
  const Processors& used = energy.processors;
  std::string text = fmt::format(
      "whole nodes, shared with others: {:.0f} % of the processor time was used by others",
      100 * used.others_s / (used.job_s + used.others_s));
  const auto job = energy.job_part();
  if (!job) return text + "\n";
  return text + fmt::format(
                    "; by processor time\nthe job's part is {}, if processors draw at most twice "
                    "as much for one program "
                    "as for another\n",
                    joules_text(*job));
}

// Slurm's number of the same jobs. It has the time before and after the program, and power does
// not.
std::string slurm_text(const NamedEnergy& job) {
  if (!job.slurm) return "";
  const SlurmEnergy& slurm = *job.slurm;
  std::string text = fmt::format("by Slurm's accounting (ConsumedEnergy of {}): {} in {}",
                                 fmt::join(slurm.jobs, ", "), unit_text(slurm.joules, "J"),
                                 unit_text(slurm.seconds, "s"));
  const auto watts = job.energy.watts();
  if (!(slurm.seconds > 0) || !watts || !(*watts > 0)) return printable(text) + "\n";
  const double slurm_w = slurm.joules / slurm.seconds;
  text +=
      fmt::format(", a mean power of {}; the ledger has {} ({:+.1f} %)", unit_text(slurm_w, "W"),
                  unit_text(*watts, "W"), 100 * (*watts / slurm_w - 1));
  return printable(text) + "\n";
}

// What must be known beside the numbers.
std::string notes_text(const NamedEnergy& job) {
  const EnergySummary& energy = job.energy;
  std::string text =
      slurm_text(job) + sharing_text(energy) + uncertainty_text(energy) + slowed_text(energy);
  text += left_out_text(energy);
  if (energy.gap_s > 0) {
    text += fmt::format("no source knows anything of {:.3f} s; their energy is in no number\n",
                        energy.gap_s);
  }
  if (energy.unmetered > 0) {
    text += fmt::format(
        "of {} of {} machines the energy is unknown, of some of the time at least, and in no "
        "number\n",
        energy.unmetered, energy.machines);
  }
  const Amount phases = energy.all_phases();
  if (phases.joules.unknown > 0) {
    text += fmt::format("of {} of {} phases the energy is unknown; it counts as the program's\n",
                        phases.joules.unknown, phases.times);
  }
  if (energy.whole.is_partial()) {
    text += fmt::format("in {} of {} lines the energy of the whole is missing\n",
                        energy.whole.unknown + energy.whole.absent, energy.energy_lines);
  }
  if (energy.damaged_lines > 0) {
    text += fmt::format("{} damaged: {} lines are left out, whole or in part\n",
                        printable(job.ledger), energy.damaged_lines);
  }
  return text;
}

std::string rework_text(const Rework& rework) {
  const std::string start =
      fmt::format("start {} went back to version {}: ", rework.incarnation, rework.version);
  if (!rework.is_known)
    return start + "how much work was done again is not known, no line tells of its capture\n";
  std::string text = start;
  if (rework.seconds < 0.005) {
    text += "no work that a line tells of was for nothing";
  } else if (rework.joules.known == 0) {
    text += fmt::format("{:.2f} s of the program were for nothing", rework.seconds);
  } else {
    text += fmt::format("{:.2f} s and {} of the program were for nothing", rework.seconds,
                        joules_text(rework.joules));
  }
  if (rework.unaccounted_s) {
    text += fmt::format(", and what it did after its last line, {:.2f} s before this start",
                        *rework.unaccounted_s);
  }
  return text + "\n";
}

std::string comparison_notes(const EnergySummary& energy, std::span<const NamedEnergy> baselines) {
  std::string text;
  for (const NamedEnergy& one : baselines) {
    const EnergySummary& baseline = one.energy;
    if (energy.total == baseline.total && energy.kind() == baseline.kind()) continue;
    text += fmt::format("beware: the baseline's energy is known otherwise: {}\n",
                        source_text(baseline));
  }
  if (baselines.size() == 1) {
    text +=
        "how far two runs of the same differ is in no change: --baseline may be given again, for "
        "more runs of it\n";
  }
  return text;
}

std::string advice_text(const Advice& advice, const EnergySummary& energy) {
  return fmt::format("to save {}{} ({}{}): {}; {}\n", advice.is_at_most ? "at most " : "",
                     joules_text(advice.saves), advice.is_at_most ? "at most " : "",
                     share_text(advice.saves, energy), advice.what, advice.how_sure);
}

// Nothing where no source was there, null where it is unknown.
json sources_json(const EnergySummary& energy) {
  json sources = json::array();
  for (const EnergySource& one : energy.sources) {
    sources.push_back({{"domain", one.domain}, {"source", one.source}, {"kind", one.kind}});
  }
  return sources;
}

json or_null(std::optional<double> value) { return value ? json(*value) : json(nullptr); }

json whole_json(const NamedEnergy& job) {
  const EnergySummary& energy = job.energy;
  json one = {{"ledger", job.ledger},
              {"energy_lines", energy.energy_lines},
              {"damaged_lines", energy.damaged_lines},
              {"incarnations", energy.incarnations},
              {"machines", energy.machines},
              {"unmetered", energy.unmetered},
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

json phases_json(const EnergySummary& energy) {
  json phases = json::array();
  for (const auto& [key, amount] : energy.phases) {
    json one = {{"version", key.version}, {"for", activity_of(key)}, {"level", key.level},
                {"phase", key.phase},     {"times", amount.times},   {"seconds", amount.seconds},
                {"bytes", amount.bytes}};
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
    put_joules(level, sum.joules);
    const Joules of_gb = per_gb(sum);
    level["j_per_gb"] = or_null(of_gb.value());
    level["j_per_gb_off"] = or_null(of_gb.uncertainty());
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

// A cell that a spreadsheet takes for one.
std::string csv_cell(const std::string& text) {
  std::string cell = printable(text);
  if (cell.find_first_of(",\"") == std::string::npos) return cell;
  for (std::size_t at = cell.find('"'); at != std::string::npos; at = cell.find('"', at + 2))
    cell.insert(at, "\"");
  return "\"" + cell + "\"";
}

}  // namespace

std::string energy_text(const NamedEnergy& job, std::span<const NamedEnergy> baselines) {
  const EnergySummary& energy = job.energy;
  const std::string of = energy.part.empty() ? "total" : "of the " + energy.part + " alone";
  std::string text =
      fmt::format("{}\nstarts: {}, machines: {}, {}: {}\n\n", printable(job.ledger),
                  energy.incarnations.size(), energy.machines, of, source_text(energy));
  text += whole_text(energy, baselines) + "\n" + by_phase(energy);
  if (!energy.phases.empty()) text += "\n" + by_level(energy) + "\n" + by_version(energy);
  std::string notes = notes_text(job);
  for (const Rework& rework : energy.rework) notes += rework_text(rework);
  notes += comparison_notes(energy, baselines);
  if (!energy.part.empty()) return notes.empty() ? text : text + "\n" + notes;
  const auto hindsight = hindsight_of(job.measured);
  notes += hindsight_text(job.measured, hindsight);
  for (const Advice& advice : advice_for(energy, hindsight)) notes += advice_text(advice, energy);
  return notes.empty() ? text : text + "\n" + notes;
}

std::string energy_json(const NamedEnergy& job, std::span<const NamedEnergy> baselines) {
  json document = {{"schema", 1}};
  document.update(whole_json(job));
  document["phases"] = phases_json(job.energy);
  document["levels"] = levels_json(job.energy);
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

std::string energy_csv(const EnergySummary& energy) {
  const auto value = [](std::optional<double> number) {
    return number ? fmt::format("{}", *number) : std::string();
  };
  std::string text =
      "version,for,level,phase,times,seconds,bytes,joules,unknown,absent,percent,uncertainty_j,"
      "obtained,domain,kind,"
      "source,sampling_j,sensor_j,attribution_j\n";
  const std::string from =
      fmt::format("{},{},{}", csv_cell(energy.total), csv_cell(energy.kind()),
                  csv_cell(fmt::format("{}", fmt::join(energy.total_sources(), "; "))));
  const auto parts = [&](const Joules& joules) {
    if (joules.known == 0 || joules.doubted < joules.known) return from + ",,,";
    return fmt::format("{},{},{},{}", from, joules.sampling,
                       joules.is_estimate() ? std::string() : fmt::format("{}", joules.sensor),
                       joules.attribution);
  };
  for (const auto& [key, amount] : energy.phases) {
    const Joules& joules = amount.joules;
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", key.version, activity_of(key), key.level,
        csv_cell(key.phase), amount.times, amount.seconds, amount.bytes, value(joules.value()),
        joules.unknown, joules.absent, value(share_percent(joules, energy)),
        value(joules.uncertainty()),
        value(amount.slowed.times > 0 ? std::optional(amount.slowed.obtained) : std::nullopt),
        parts(joules));
  }
  const Joules& program = energy.program;
  return text + fmt::format(",program,,,,,,{},{},{},{},{},,{}\n", value(program.value()),
                            program.unknown, program.absent, value(share_percent(program, energy)),
                            value(program.uncertainty()), parts(program));
}

}  // namespace diapause::cli
