#include "cli/energy_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/json_fields.hpp"

namespace diapause::cli {
namespace {

using json = nlohmann::ordered_json;
using fields::count;
using fields::duration;
using fields::find;
using fields::kNewestSchema;
using fields::number;
using fields::text;

Slowed slowed_of(const json& phase) {
  const json* const slowed = find(phase, "slowed");
  if (slowed == nullptr) return {};
  const auto asked = number(*slowed, "asked");
  const auto obtained = number(*slowed, "obtained");
  const auto actuator = text(*slowed, "actuator");
  return asked && obtained && actuator ? Slowed{1, *asked, *obtained, {*actuator}} : Slowed{};
}

std::optional<std::pair<PhaseKey, Amount>> phase_of(const json& line, const Wanted& wanted) {
  const auto version = count(line, "version");
  const auto level = count(line, "level");
  const auto name = text(line, "phase");
  const auto seconds = duration(line, "seconds");
  const auto bytes = count(line, "bytes");
  if (!version || !level || *level > 4 || !name || !seconds || !bytes) return std::nullopt;
  Amount amount{1, *seconds, *bytes, joules_of(line, wanted), slowed_of(line)};
  if (text(line, "beside") == "nothing") {
    amount.holding = amount.joules;
    amount.holding_s = *seconds;
  }
  return std::pair(PhaseKey{*version, is_restart_phase(*name), *level, *name}, amount);
}

void add_processors(Processors& sum, const json& line) {
  const json* const told = find(line, "processors");
  if (told == nullptr) return;
  const auto job_s = duration(*told, "job_s");
  const auto others_s = duration(*told, "others_s");
  const auto others_most_s = duration(*told, "others_most_s");
  if (!job_s || !others_s || !others_most_s) return;
  ++sum.lines;
  sum.job_s += *job_s;
  sum.others_s += *others_s;
  sum.others_most_s += *others_most_s;
  const auto job_j = number(*told, "job_j");
  const auto off_j = duration(*told, "job_attribution_j");
  if (!job_j || !off_j) return;
  ++sum.lines_with_joules;
  sum.job_j += *job_j;
  sum.job_off_j += *off_j;
}

std::string accuracy_of(const json& source) {
  const auto who = text(source, "accuracy_source");
  if (!who) return "";
  const auto share = duration(source, "accuracy");
  return share ? fmt::format("off by up to {:.2g} %: {}", 100 * *share, *who)
               : "without a bound: " + *who;
}

void add_sources(std::set<EnergySource>& sources, const json& line) {
  const json* const list = find(line, "sources");
  if (list == nullptr || !list->is_array()) return;
  for (const json& one : *list) {
    const auto domain = text(one, "domain");
    const auto source = text(one, "source");
    const auto kind = text(one, "kind");
    if (domain && source && kind) sources.insert({*domain, *source, *kind, accuracy_of(one)});
  }
}

}  // namespace

struct EnergyReader::Line {  // NOLINT(bugprone-exception-escape): to move a json throws nothing
  json fields;
  std::uint64_t incarnation = 0;
  double unix_s = 0;
};

void Slowed::add(const Slowed& more) {
  times += more.times;
  asked = std::min(asked, more.asked);
  obtained = std::min(obtained, more.obtained);
  actuators.insert(more.actuators.begin(), more.actuators.end());
}

void Amount::add(const Amount& more) {
  times += more.times;
  seconds += more.seconds;
  bytes += std::min(more.bytes, std::numeric_limits<std::uint64_t>::max() - bytes);
  joules.add(more.joules);
  slowed.add(more.slowed);
  holding.add(more.holding);
  holding_s += more.holding_s;
}

std::optional<bool> EnergySummary::is_shared() const {
  constexpr double kMostOfOthers = 0.5;  // processors; services of a machine use less
  if (processors.lines == 0 || processors.lines < energy_lines) return std::nullopt;
  if (!(processors.others_s > 0)) return false;
  return processors.others_most_s >= kMostOfOthers * (seconds - missing_s);
}

// The sources err for the part as for the whole.
std::optional<Joules> EnergySummary::job_part() const {
  if (!part.empty() || whole.known == 0 || processors.lines_with_joules < whole.known ||
      whole.sum == 0)
    return std::nullopt;
  const double share = processors.job_j / whole.sum;
  Joules job = whole;
  job.sum = processors.job_j;
  job.sampling *= share;
  job.sensor *= share;
  job.attribution = processors.job_off_j;
  return job;
}

std::optional<double> EnergySummary::watts() const {
  const auto joules = whole.of_known();
  return joules && covered_s > 0 ? std::optional(*joules / covered_s) : std::nullopt;
}

Amount EnergySummary::all_phases() const {
  Amount all;
  for (const auto& [key, amount] : phases) all.add(amount);
  return all;
}

bool EnergySummary::is_of_total(const EnergySource& source) const {
  return total == "mixed" || is_part(source.domain, total);
}

std::set<std::string> EnergySummary::total_sources() const {
  std::set<std::string> names;
  for (const EnergySource& one : sources) {
    if (is_of_total(one)) names.insert(one.source);
  }
  return names;
}

std::string EnergySummary::kind() const {
  std::set<std::string> kinds;
  for (const EnergySource& one : sources) {
    if (is_of_total(one)) kinds.insert(one.kind);
  }
  std::string joined;
  for (const std::string& one : kinds) joined += (joined.empty() ? "" : " and ") + one;
  return joined;
}

bool is_restart_phase(std::string_view phase) {
  constexpr std::string_view kPhases[] = {"inventory", "verify", "fetch", "rebuild", "restore"};
  return std::find(std::begin(kPhases), std::end(kPhases), phase) != std::end(kPhases);
}

std::optional<double> percent_more(std::optional<double> value, std::optional<double> baseline) {
  if (!value || !baseline || *baseline == 0) return std::nullopt;
  return (*value - *baseline) / *baseline * 100;
}

void EnergyReader::add_line(std::string_view line) {
  Line one;
  one.fields = json::parse(line, nullptr, false);
  const auto event = text(one.fields, "event");
  if (!event) {
    ++summary_.damaged_lines;
    return;
  }
  if (*event == "lost") summary_.lost_lines += count(one.fields, "lines").value_or(0);
  if (*event == "close") {
    const auto closed_unix_s = duration(one.fields, "time_unix_s");
    if (closed_unix_s) starts_.close(count(one.fields, "incarnation"), *closed_unix_s);
  }
  if (*event == "checkpoint") {
    const auto version = count(one.fields, "version");
    const auto waited_s = duration(one.fields, "waited_s");
    if (version && waited_s) summary_.waited_for_room_s[*version] += *waited_s;
  }
  if (*event != "energy" && *event != "restart" && *event != "open") return;
  if (const auto schema = count(one.fields, "schema").value_or(1);
      schema < 1 || schema > kNewestSchema) {
    summary_.other_schema = schema;
    return;
  }
  const auto incarnation = count(one.fields, "incarnation");
  const auto unix_s = duration(one.fields, "time_unix_s");
  if (!incarnation || !unix_s) {
    ++summary_.damaged_lines;
    return;
  }
  one.incarnation = *incarnation;
  one.unix_s = *unix_s;
  if (*event == "open") {
    opened_unix_s_[one.incarnation] = one.unix_s;
    sequence_.open(one.incarnation, one.unix_s);
    starts_.open(one.incarnation, one.unix_s);
  }
  if (const auto slurm_job = text(one.fields, "slurm_job"); slurm_job && *event == "open") {
    summary_.slurm_jobs.insert(*slurm_job);
  }
  if (*event == "restart") add_restart(one);
  if (*event == "energy" && !add_energy(one)) ++summary_.damaged_lines;
}

// Returns false if something of the line is damaged; what is sound is taken.
bool EnergyReader::add_energy(const Line& line) {
  const auto seconds = duration(line.fields, "seconds");
  const auto gap_s = duration(line.fields, "gap_s");
  const json* const whole = find(line.fields, "whole");
  const json* const program = find(line.fields, "program");
  const json* const phases = find(line.fields, "phases");
  const auto total = text(line.fields, "total");
  if (!seconds || !gap_s || !whole || !program || !phases || !phases->is_array() || !total)
    return false;
  ++summary_.energy_lines;
  if (const auto hole = sequence_.add(
          {line.incarnation, count(line.fields, "number"), line.unix_s - *seconds, line.unix_s})) {
    add_hole(*hole);
  }
  const json* const last = find(line.fields, "last");
  starts_.add_energy(line.incarnation, line.unix_s, last != nullptr && *last == true);
  summary_.incarnations.insert(line.incarnation);
  summary_.machines = std::max(summary_.machines, count(line.fields, "machines").value_or(1));
  summary_.unmetered = std::max(summary_.unmetered, count(line.fields, "unmetered").value_or(0));
  summary_.hosts.insert(text(line.fields, "hosts").value_or(""));
  summary_.seconds += *seconds;
  summary_.gap_s += std::min(*gap_s, *seconds);
  Wanted wanted = wanted_of(part_, *whole, *total);
  wanted.is_of_all = count(line.fields, "unmetered").value_or(0) == 0;
  add_domains(line, wanted.is_of_all);
  const Joules used = joules_of(*whole, wanted);
  if (used.known > 0) summary_.covered_s += std::max(0.0, *seconds - *gap_s);
  summary_.whole.add(used);
  add_processors(summary_.processors, line.fields);
  summary_.program.add(joules_of(*program, wanted));
  ends_.add({line.incarnation, sequence_.nth(), sequence_.adjoins()},
            used.known > 0 ? ends_of(*whole, wanted) : std::nullopt);
  const std::string name = part_.empty() ? *total : wanted.is_told ? wanted.name : "";
  if (!name.empty()) {
    if (summary_.total.empty()) summary_.total = name;
    if (summary_.total != name) summary_.total = "mixed";
  }
  add_sources(summary_.sources, line.fields);
  if (const auto parts = text(line.fields, "told_apart_by")) summary_.told_apart_by.insert(*parts);
  if (const json* const boards = find(line.fields, "left_out");
      boards != nullptr && boards->is_array()) {
    for (const json& one : *boards) {
      if (one.is_string()) summary_.left_out.insert(one.get<std::string>());
    }
  }
  stretches_.push_back({line.unix_s - *seconds, line.unix_s, line.incarnation, line.unix_s,
                        joules_of(*program, wanted)});
  bool all_sound = true;
  for (const json& one : *phases) {
    const auto phase = phase_of(one, wanted);
    all_sound = all_sound && phase.has_value();
    if (!phase) continue;
    summary_.phases[phase->first].add(phase->second);
    const auto start = number(one, "start_unix_s");
    if (phase->first.phase != "capture" || !start) continue;
    captured_unix_s_[phase->first.version][line.incarnation] = *start + phase->second.seconds;
  }
  return all_sound;
}

// Work that an earlier restart has lost already is not lost again.
void EnergyReader::add_restart(const Line& line) {
  const auto version = count(line.fields, "version");
  if (!version) {
    ++summary_.damaged_lines;
    return;
  }
  Rework rework;
  rework.incarnation = line.incarnation;
  rework.version = *version;
  std::optional<double> captured_s = duration(line.fields, "captured_unix_s");
  for (const auto& [incarnation, at_s] : captured_unix_s_[*version]) {
    if (incarnation < line.incarnation) captured_s = at_s;
  }
  rework.is_known = captured_s.has_value();
  std::optional<double> last_s;
  for (Stretch& stretch : stretches_) {
    if (stretch.incarnation >= line.incarnation || !captured_s) continue;
    last_s = std::max(last_s.value_or(stretch.to_unix_s), stretch.to_unix_s);
    const double from_s = std::max(stretch.from_unix_s, *captured_s);
    const double lost_s = stretch.lost_from_unix_s - from_s;
    if (!(lost_s > 0)) continue;
    stretch.lost_from_unix_s = from_s;
    Joules lost = stretch.joules;
    const double share = lost_s / (stretch.to_unix_s - stretch.from_unix_s);
    lost.sum *= share;
    if (share < 1)
      lost.doubted = lost.bounded = 0;  // nobody knows when in its time the line's energy was used
    rework.seconds += lost_s;
    rework.joules.add(lost);
  }
  const auto opened = opened_unix_s_.find(line.incarnation);
  if (last_s && opened != opened_unix_s_.end())
    rework.unaccounted_s = std::max(0.0, opened->second - *last_s);
  summary_.rework.push_back(rework);
}

// A phase of which a domain is not told has it unknown.
void EnergyReader::add_domains(const Line& line, bool is_of_all) {
  const json& whole = line.fields["whole"];
  const json* const joules = find(whole, "joules");
  if (joules == nullptr || !joules->is_object()) return;
  for (const auto& [domain, value] : joules->items()) {
    if (domain == "total" || !fields::number_of(value)) continue;
    Wanted wanted = wanted_of_domain(domain);
    wanted.is_of_all = is_of_all;
    DomainEnergy& sum = summary_.domains[domain];
    const Joules used = joules_of(whole, wanted);
    sum.whole.add(used);
    ends_of_domains_[domain].add({line.incarnation, sequence_.nth(), sequence_.adjoins()},
                                 used.known > 0 ? ends_of(whole, wanted) : std::nullopt);
    for (const json& phase : line.fields["phases"]) {
      if (phase_of(phase, wanted)) sum.phases.add(joules_of(phase, wanted));
    }
  }
}

// The energy of the missing lines is in no number.
void EnergyReader::add_hole(const Hole& hole) {
  summary_.missing_lines += hole.lines;
  summary_.missing_s += hole.seconds;
  summary_.seconds += hole.seconds;
  summary_.gap_s += hole.seconds;
  Joules missing;
  missing.unknown = hole.lines;
  summary_.whole.add(missing);
  summary_.program.add(missing);
}

EnergySummary EnergyReader::take() {
  summary_.part = part_;
  summary_.open_ends = starts_.open_ends();
  for (const StartEnds::OpenEnd& end : summary_.open_ends) {
    if (end.was_closed) add_hole({1, end.seconds.value_or(0)});  // it ran all the while
  }
  if (ends_.apply_to(summary_.whole)) {
    Joules& program = summary_.program;
    const double of_phases = summary_.all_phases().joules.sampling;
    program.sampling = std::min(summary_.whole.sampling + of_phases, program.sampling);
  }
  for (auto& [domain, energy] : summary_.domains) {
    ends_of_domains_[domain].apply_to(energy.whole);
    energy.whole.absent += summary_.energy_lines - energy.whole.known - energy.whole.unknown;
    energy.whole.unknown += summary_.missing_lines;
  }
  return std::move(summary_);
}

}  // namespace diapause::cli
