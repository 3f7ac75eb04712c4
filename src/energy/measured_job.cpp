#include "energy/measured_job.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace diapause::energy {

struct MeasuredJobReader::Line {
  nlohmann::json fields;

  std::optional<double> number(const char* name) const { return number_in(fields, name); }
  static std::optional<double> number_in(const nlohmann::json& object, const char* name) {
    const auto at = object.find(name);
    if (at == object.end() || !at->is_number()) return std::nullopt;
    const double value = at->get<double>();
    return std::isfinite(value) && value >= 0 && value < 1e15 ? std::optional(value) : std::nullopt;
  }
  std::optional<std::size_t> level(const char* name) const {
    const auto value = number(name);
    return value && *value >= 1 && *value < 6 ? std::optional(static_cast<std::size_t>(*value))
                                              : std::nullopt;
  }
};

namespace {

void add_sample(std::deque<double>& samples, double seconds) {
  samples.push_back(seconds);
  if (samples.size() > MeasuredJobReader::kWindow) samples.pop_front();
}

std::optional<double> median_of(const std::deque<double>& samples) {
  if (samples.empty()) return std::nullopt;
  std::vector<double> values(samples.begin(), samples.end());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string text_in(const nlohmann::json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

// Returns the deepest level that any rank's image came from.
std::size_t level_needed(const nlohmann::json& restart) {
  std::size_t deepest = 1;
  const auto sources = restart.find("sources");
  if (sources == restart.end() || !sources->is_array()) return deepest;
  for (const auto& source : *sources) {
    if (!source.is_string()) continue;
    const auto name = source.get<std::string>();
    const std::size_t level = name == "global"            ? 4
                              : name == "parity"          ? 3
                              : name.starts_with("peer ") ? 2
                                                          : 1;
    deepest = std::max(deepest, level);
  }
  return deepest;
}

}  // namespace

void MeasuredJobReader::add_line(std::string_view text) {
  Line line{nlohmann::json::parse(text, nullptr, false)};
  const auto schema = line.fields.is_object() ? line.number("schema") : std::nullopt;
  if (schema != 1 && schema != 2) return;
  const std::string event = text_in(line.fields, "event");
  if (event == "open") add_open(line);
  if (const auto time = line.number("time_unix_s")) last_unix_s_ = time;
  if (event == "close" || event == "stop") is_open_ = false;
  if (event == "checkpoint") add_checkpoint(line);
  if (event == "restart") add_restart(line);
  if (event == "schedule") add_schedule(line);
  if (event == "energy") add_energy(line);
}

void MeasuredJobReader::add_open(const Line& line) {
  has_failed_ = is_open_;
  if (has_failed_) ++job_.failed_starts;
  job_.ran_s += start_ran_s();
  is_open_ = true;
  opened_unix_s_ = last_unix_s_ = line.number("time_unix_s");
  const double most = std::numeric_limits<std::uint32_t>::max();
  const auto nodes = static_cast<std::uint32_t>(std::min(most, line.number("nodes").value_or(0)));
  const auto ranks = static_cast<std::uint32_t>(std::min(most, line.number("ranks").value_or(0)));
  if (nodes != job_.nodes || ranks != job_.ranks) {
    samples_ = {};
    program_j_ = program_s_ = waiting_j_ = waiting_s_ = 0;
  }
  job_.nodes = nodes;
  job_.ranks = ranks;
}

double MeasuredJobReader::start_ran_s() const {
  return opened_unix_s_ && last_unix_s_ ? std::max(0.0, *last_unix_s_ - *opened_unix_s_) : 0;
}

void MeasuredJobReader::add_checkpoint(const Line& line) {
  const auto level = line.level("level_reached");
  const auto blocked_s = line.number("blocked_s");
  if (!level || !blocked_s) return;
  if (const auto bytes = line.number("bytes_total"))
    job_.bytes = static_cast<std::uint64_t>(*bytes);
  ++job_.levels[*level].checkpoints;
  for (std::size_t other = 1; other < job_.levels.size(); ++other) {
    job_.levels[other].since = other <= *level ? 0 : job_.levels[other].since + 1;
  }
  job_.blocked_s += *blocked_s;
  add_sample(samples_[*level].blocked_s, *blocked_s);
  const double waited_s = line.number("waited_s").value_or(0);
  add_sample(samples_[*level].with_room_s, std::max(0.0, *blocked_s - waited_s));
  const auto phases = line.fields.find("phases");
  if (phases == line.fields.end() || !phases->is_object()) return;
  double sum_s = 0;
  for (const auto& [name, seconds] : phases->items()) {
    sum_s += Line::number_in(*phases, name.c_str()).value_or(0);
  }
  // The phases took longer than the program waited, so the difference went on behind it.
  add_sample(samples_[*level].behind_s, std::max(0.0, sum_s - *blocked_s));
}

void MeasuredJobReader::add_restart(const Line& line) {
  const auto level = line.level("level");
  const auto seconds = line.number("seconds");
  if (!level || !seconds) return;
  ++job_.levels[*level].restarts;
  job_.restarting_s += *seconds;
  if (has_failed_) ++job_.levels[level_needed(line.fields)].failures;
  has_failed_ = false;
  add_sample(samples_[*level].restart_s, *seconds);
}

void MeasuredJobReader::add_schedule(const Line& line) {
  for (MeasuredLevel& level : job_.levels) level.mtbf_s.reset();
  const auto levels = line.fields.find("levels");
  if (levels == line.fields.end() || !levels->is_array()) return;
  for (const auto& entry : *levels) {
    if (!entry.is_object()) continue;
    const auto number = Line::number_in(entry, "level");
    const auto mtbf_s = Line::number_in(entry, "mtbf_s");
    if (number && *number >= 1 && *number < 6 && mtbf_s && *mtbf_s > 0) {
      job_.levels[static_cast<std::size_t>(*number)].mtbf_s = mtbf_s;
    }
  }
}

void MeasuredJobReader::add_energy(const Line& line) {
  const auto seconds = line.number("seconds");
  const auto program = line.fields.find("program");
  if (!seconds || program == line.fields.end() || !program->is_object()) return;
  const auto joules = program->find("joules");
  if (joules == program->end() || !joules->is_object()) return;
  const auto total = Line::number_in(*joules, "total");
  if (!total) return;
  double waited_s = 0;
  const auto phases = line.fields.find("phases");
  if (phases != line.fields.end() && phases->is_array()) {
    for (const auto& phase : *phases) {
      if (!phase.is_object() || text_in(phase, "beside") == "program") continue;
      const double phase_s = Line::number_in(phase, "seconds").value_or(0);
      waited_s += phase_s;
      const auto used = phase.find("joules");
      if (used == phase.end() || !used->is_object()) continue;
      if (const auto phase_j = Line::number_in(*used, "total")) {
        waiting_j_ += *phase_j;
        waiting_s_ += phase_s;
      }
    }
  }
  program_j_ += *total;
  program_s_ += std::max(0.0, *seconds - waited_s);
}

MeasuredJob MeasuredJobReader::job() const {
  MeasuredJob job = job_;
  job.ran_s += start_ran_s();
  for (std::size_t level = 1; level < job.levels.size(); ++level) {
    job.levels[level].blocked_s = median_of(samples_[level].blocked_s);
    job.levels[level].with_room_s = median_of(samples_[level].with_room_s);
    job.levels[level].behind_s = median_of(samples_[level].behind_s);
    job.levels[level].restart_s = median_of(samples_[level].restart_s);
  }
  if (program_s_ > 0 && program_j_ > 0) job.compute_w = program_j_ / program_s_;
  // Phases that are shorter than the time between two readings tell little.
  if (waiting_s_ > 0.5 && waiting_j_ > 0) job.checkpoint_w = waiting_j_ / waiting_s_;
  return job;
}

}  // namespace diapause::energy
