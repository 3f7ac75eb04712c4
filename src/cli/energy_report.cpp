#include "cli/energy_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/energy_advice.hpp"
#include "cli/energy_amounts.hpp"
#include "cli/energy_comparison.hpp"
#include "cli/energy_notes.hpp"
#include "cli/hindsight.hpp"
#include "cli/text.hpp"

namespace diapause::cli {

namespace {

// They are in the order of docs/energy-account.md. Phases that a later version of the library adds
// come after them.
constexpr std::string_view kPhases[] = {"wait",    "freeze",  "dump",      "connections", "capture",
                                        "drain",   "keep",    "partner",   "parity",      "encode",
                                        "global",  "publish", "inventory", "verify",      "fetch",
                                        "rebuild", "restore"};

constexpr const char* kParts[] = {"  off by sampling", "  off by the source",
                                  "  off by who is charged"};

std::string change_text(const std::optional<Change>& change) {
  if (!change) return "-";
  std::string text = fmt::format("{:+.1f} %", change->percent);
  if (change->off) text += fmt::format(" +- {:.1f} %", *change->off);
  return text + (change->is_told_apart() == false ? ": not told apart" : "");
}

std::string seconds_text(std::optional<double> seconds) {
  return seconds ? fmt::format("{:.2f} s", *seconds) : "-";
}

// Returns joules, divided by `parts`, with their bounds.
Joules part_of(Joules joules, double parts) {
  joules.sum /= parts;
  joules.sampling /= parts;
  joules.sensor /= parts;
  joules.attribution /= parts;
  return joules;
}

// Returns the mean power of runs, with the bounds of all of them.
std::string watts_text(std::span<const EnergySummary> runs) {
  Joules joules;
  double seconds = 0;
  for (const EnergySummary& run : runs) {
    joules.add(run.whole);
    seconds += run.covered_s;
  }
  if (joules.known < runs.size() || !(seconds > 0)) return "-";
  const double watts = joules.sum / seconds;
  const auto off = joules.uncertainty();
  if (joules.is_estimate()) return "~ " + rounded_text(watts, 2, "W");
  return off ? value_text(watts, *off / seconds, "W") : rounded_text(watts, 3, "W");
}

Joules mean_joules(std::span<const EnergySummary> runs) {
  Joules joules;
  for (const EnergySummary& run : runs) joules.add(run.whole);
  return part_of(joules, static_cast<double>(runs.size()));
}

Table::Column right(const char* head) { return {head, Align::right}; }

void add_energy_columns(std::vector<Table::Column>& columns) {
  columns.push_back(right("ENERGY"));
  for (const char* const head : kPartHeads) columns.push_back(right(head));
}

// Adds joules and the three parts of their bound to the cells of a row.
void add_energy_cells(std::vector<std::string>& row, const Joules& joules) {
  row.push_back(joules_text(joules));
  const auto parts = part_cells(joules);
  row.insert(row.end(), parts.begin(), parts.end());
}

Table table_of(std::vector<Table::Column> columns) {
  columns.insert(columns.end(), {right("SECONDS"), right("BYTES")});
  add_energy_columns(columns);
  columns.push_back(right("OF ALL"));
  return Table(std::move(columns));
}

void add_amount(Table& table, std::vector<std::string> row, const Amount& amount,
                const EnergySummary& energy) {
  row.insert(row.end(), {fmt::format("{:.3f}", amount.seconds), bytes_text(amount.bytes)});
  add_energy_cells(row, amount.joules);
  row.push_back(share_text(amount.joules, energy));
  table.add(std::move(row));
}

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
  const std::pair<const char*, const Joules*> others[] = {{"program", &energy.program},
                                                          {"whole job", &energy.whole}};
  for (const auto& [name, joules] : others) {
    std::vector<std::string> row = {name, "", "", ""};
    add_energy_cells(row, *joules);
    row.push_back(share_text(*joules, energy));
    table.add(std::move(row));
  }
  return table.text();
}

std::string by_level(const EnergySummary& energy) {
  Table table = table_of({{"LEVEL"}, right("VERSIONS")});
  std::vector<Table::Column> columns = {{"FOR A GB OF"}};
  add_energy_columns(columns);
  Table of_gb(std::move(columns));
  for (const LevelSum& one : sums_of_levels(energy)) {
    const Amount sum = one.group.sum();
    add_amount(table, {one.name, fmt::format("{}", one.group.versions())}, sum, energy);
    std::vector<std::string> row = {one.name};
    add_energy_cells(row, per_gb(sum));
    of_gb.add(std::move(row));
  }
  return table.text() + "\n" + of_gb.text();
}

// Returns a table of the domains, if there is more to tell than the total.
std::string by_domain(const EnergySummary& energy) {
  const auto& domains = energy.domains;
  if (domains.empty() || (domains.size() == 1 && domains.begin()->first == energy.total)) return "";
  std::vector<Table::Column> columns = {{"DOMAIN"}, {"KNOWN AS"}, {"FOR"}};
  add_energy_columns(columns);
  columns.push_back(right("OF ALL"));
  Table table(std::move(columns));
  for (const auto& [domain, sum] : domains) {
    const bool is_covered = is_covered_by(energy.total, domain);
    const std::pair<const char*, const Joules*> both[] = {{"whole job", &sum.whole},
                                                          {"its phases", &sum.phases}};
    for (const auto& [what, joules] : both) {
      std::vector<std::string> row = {printable(domain), kind_of(energy, domain), what};
      add_energy_cells(row, *joules);
      row.push_back(is_covered ? share_text(*joules, energy) : "not in the total");
      table.add(std::move(row));
    }
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

std::string whole_text(const EnergySummary& energy, std::span<const NamedEnergy> baselines) {
  if (baselines.empty()) {
    Table table({{"WHOLE JOB"}, right("")});
    table.add({"runtime", seconds_text(energy.seconds)});
    table.add({"average power", watts_text(std::span(&energy, 1))});
    table.add({"energy", joules_text(energy.whole)});
    const auto parts = part_cells(energy.whole);
    for (std::size_t i = 0; i < parts.size(); ++i) table.add({kParts[i], parts[i]});
    return table.text();
  }
  const std::vector<EnergySummary> others = summaries_of(baselines);
  const Comparison with = compare(energy, others);
  const std::string head =
      baselines.size() == 1 ? "BASELINE" : fmt::format("MEAN OF {} BASELINES", baselines.size());
  Table table({{"WHOLE JOB"}, right(""), {head, Align::right}, right("CHANGE")});
  table.add({"runtime", seconds_text(energy.seconds), seconds_text(with.seconds),
             change_text(with.runtime_change)});
  table.add({"average power", watts_text(std::span(&energy, 1)), watts_text(others),
             change_text(with.watts_change)});
  const Joules mean = mean_joules(others);
  table.add(
      {"energy", joules_text(energy.whole), joules_text(mean), change_text(with.joules_change)});
  const auto parts = part_cells(energy.whole), mean_parts = part_cells(mean);
  for (std::size_t i = 0; i < parts.size(); ++i)
    table.add({kParts[i], parts[i], mean_parts[i], ""});
  return table.text();
}

std::string advice_text(const Advice& advice, const EnergySummary& energy) {
  const char* const at_most = advice.is_at_most ? "at most " : "";
  const auto percent = share_percent(advice.saves, energy);
  std::string share;
  if (percent && advice.is_at_most)
    share = fmt::format(" (at most {})", share_text(advice.saves, energy));
  if (percent && !advice.is_at_most) share = fmt::format(" ({})", rounded_text(*percent, 2, "%"));
  return fmt::format("to save {}{}{}{}: {}; {}\n", at_most, joules_text(advice.saves),
                     short_parts_text(advice.saves), share, advice.what, advice.how_sure);
}

// Returns text as one cell of a spreadsheet, which would compute what begins with one of "=+-@".
std::string csv_cell(const std::string& text) {
  std::string cell = printable(text);
  if (cell.find_first_of("=+-@") == 0) cell.insert(0, 1, '\'');
  if (cell.find_first_of(",\"") == std::string::npos) return cell;
  for (std::size_t at = cell.find('"'); at != std::string::npos; at = cell.find('"', at + 2))
    cell.insert(at, 1, '"');
  return "\"" + cell + "\"";
}

}  // namespace

std::vector<EnergySummary> summaries_of(std::span<const NamedEnergy> jobs) {
  std::vector<EnergySummary> summaries;
  for (const NamedEnergy& job : jobs) summaries.push_back(job.energy);
  return summaries;
}

std::string energy_text(const NamedEnergy& job, std::span<const NamedEnergy> baselines) {
  const EnergySummary& energy = job.energy;
  const std::string of = energy.part.empty() ? "total" : "of the " + energy.part + " alone";
  std::string text =
      fmt::format("{}\nstarts: {}, machines: {}, {}: {}\n\n", printable(job.ledger),
                  energy.incarnations.size(), energy.machines, of, source_text(energy));
  text += whole_text(energy, baselines) + "\n" + by_phase(energy);
  if (!energy.phases.empty()) text += "\n" + by_level(energy) + "\n" + by_version(energy);
  const std::string domains = energy.part.empty() ? by_domain(energy) : "";
  if (!domains.empty()) text += "\n" + domains;
  std::string notes = notes_text(job);
  for (const Rework& rework : energy.rework) notes += rework_text(rework);
  notes += comparison_notes(energy, baselines);
  if (!energy.part.empty()) return notes.empty() ? text : text + "\n" + notes;
  const auto hindsight = hindsight_of(job.measured);
  notes += hindsight_text(job.measured, hindsight);
  for (const Advice& advice : advice_for(energy, hindsight)) notes += advice_text(advice, energy);
  return notes.empty() ? text : text + "\n" + notes;
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
        csv_cell(key.phase), amount.times, amount.seconds, amount.bytes, value(joules.of_known()),
        joules.unknown, joules.absent, value(share_percent(joules, energy)),
        value(joules.uncertainty()),
        value(amount.slowed.times > 0 ? std::optional(amount.slowed.obtained) : std::nullopt),
        parts(joules));
  }
  const Joules& program = energy.program;
  return text + fmt::format(",program,,,,,,{},{},{},{},{},,{}\n", value(program.of_known()),
                            program.unknown, program.absent, value(share_percent(program, energy)),
                            value(program.uncertainty()), parts(program));
}

}  // namespace diapause::cli
