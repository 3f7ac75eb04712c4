#include "cli/energy_report.hpp"

#include <fmt/format.h>

#include <algorithm>

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

std::string mean_text(std::span<const EnergySummary> runs) {
  Joules joules;
  for (const EnergySummary& run : runs) joules.add(run.whole);
  return joules_text(part_of(joules, static_cast<double>(runs.size())));
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

// Returns a table of the domains, if there is more to tell than the total.
std::string by_domain(const EnergySummary& energy) {
  const auto& domains = energy.domains;
  if (domains.empty() || (domains.size() == 1 && domains.begin()->first == energy.total)) return "";
  Table table({{"DOMAIN"},
               {"KNOWN AS"},
               right("ENERGY"),
               right("OF ALL"),
               right("CHECKPOINTS AND RESTARTS")});
  for (const auto& [domain, sum] : domains) {
    const std::string share =
        is_covered_by(energy.total, domain) ? share_text(sum.whole, energy) : "not in the total";
    table.add({printable(domain), kind_of(energy, domain), joules_text(sum.whole), share,
               joules_text(sum.phases)});
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
  table.add(
      {"energy", joules_text(energy.whole), mean_text(others), change_text(with.joules_change)});
  return table.text();
}

std::string advice_text(const Advice& advice, const EnergySummary& energy) {
  const char* const at_most = advice.is_at_most ? "at most " : "";
  const auto percent = share_percent(advice.saves, energy);
  std::string share;
  if (percent && advice.is_at_most)
    share = fmt::format(" (at most {})", share_text(advice.saves, energy));
  if (percent && !advice.is_at_most) share = fmt::format(" ({})", rounded_text(*percent, 2, "%"));
  return fmt::format("to save {}{}{}: {}; {}\n", at_most, joules_text(advice.saves), share,
                     advice.what, advice.how_sure);
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
