#include "cli/job_history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/json_fields.hpp"
#include "cli/text.hpp"

namespace diapause::cli {
namespace {

using json = nlohmann::ordered_json;

std::string level_name(int level) {
  constexpr const char* kNames[] = {"none", "L1 own node", "L2 partner node", "L3 parity",
                                    "L4 global"};
  return level >= 0 && level <= 4 ? kNames[level] : fmt::format("L{}", level);
}

std::string cells(const std::string& version, const std::string& level, const std::string& data,
                  const std::string& blocked, const std::string& rate) {
  return fmt::format("{:>19}  {:<20}  {:>10}  {:>10}  {:>12}", version, level, data, blocked, rate);
}

std::string plural(std::uint64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string seconds_text(double seconds) {
  return seconds < 1 ? fmt::format("{:.2f} ms", seconds * 1e3) : fmt::format("{:.2f} s", seconds);
}

}  // namespace

struct HistoryReader::Line {
  json fields;

  double number(const char* name) const {
    const auto found = fields.find(name);
    return found != fields.end() && found->is_number() ? found->get<double>() : 0;
  }
  std::uint64_t count(const char* name) const {
    const auto found = fields.find(name);
    return found != fields.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
  }
  std::string text(const char* name) const {
    const auto found = fields.find(name);
    return found != fields.end() && found->is_string() ? printable(found->get<std::string>()) : "";
  }
};

std::string history_head() { return cells("VERSION", "LEVEL", "DATA", "BLOCKED", "RATE"); }

std::string HistoryReader::row_of(const Checkpoint& one) {
  const std::string number = fmt::format("{}", one.version);
  if (!one.error.empty() || one.level == 0) {
    return cells(number, "FAILED", "", seconds_text(one.blocked_s), "") + "  " + one.error;
  }
  const std::string rate =
      one.blocked_s > 0
          ? bytes_text(static_cast<std::uint64_t>(static_cast<double>(one.bytes) / one.blocked_s)) +
                "/s"
          : "-";
  return cells(number, level_name(one.level), bytes_text(one.bytes), seconds_text(one.blocked_s),
               rate);
}

std::vector<std::string> HistoryReader::flush() {
  std::vector<std::string> ready;
  if (small_.empty()) return ready;
  Checkpoint mean = small_.back();
  if (small_.size() > 1) {
    double blocked_s = 0, bytes = 0;
    for (const Checkpoint& one : small_) {
      blocked_s += one.blocked_s;
      bytes += static_cast<double>(one.bytes);
    }
    const auto count = static_cast<double>(small_.size());
    const std::string versions = fmt::format("{} ... {}", small_.front().version, mean.version);
    const std::string level = fmt::format("{} x {}", level_name(1), small_.size());
    const std::string rate =
        blocked_s > 0 ? bytes_text(static_cast<std::uint64_t>(bytes / blocked_s)) + "/s" : "-";
    ready.push_back(cells(versions, level, bytes_text(static_cast<std::uint64_t>(bytes / count)),
                          seconds_text(blocked_s / count), rate));
  } else {
    ready.push_back(row_of(mean));
  }
  small_.clear();
  return ready;
}

void HistoryReader::add_open(const Line& line, std::vector<std::string>& ready) {
  ran_before_s_ = sums_.runtime_s;
  opened_unix_s_ = line.number("time_unix_s");
  if (!has_ended_) {
    ++sums_.failures;
    const auto last_ns = static_cast<std::uint64_t>(std::max(0.0, sums_.last_unix_s) * 1e9);
    ready.push_back(
        fmt::format("  start {} FAILED after {}, its last line", sums_.starts, time_text(last_ns)));
  }
  ++sums_.starts;
  ready.push_back(
      fmt::format("  start {} at {}: {} on {}", sums_.starts,
                  time_text(static_cast<std::uint64_t>(std::max(0.0, opened_unix_s_) * 1e9)),
                  plural(line.count("ranks"), "rank"), plural(line.count("nodes"), "node")));
  has_ended_ = sums_.is_closed = false;
}

void HistoryReader::add_checkpoint(const Line& line, std::vector<std::string>& ready) {
  const Checkpoint one{line.count("version"), line.count("bytes_total"),
                       static_cast<int>(line.count("level_reached")), line.number("blocked_s"),
                       line.text("error")};
  ++sums_.checkpoints;
  sums_.blocked_s += one.blocked_s;
  if (one.level == 0) {
    ++sums_.failed;
  } else {
    sums_.newest = one.version;
    sums_.newest_level = one.level;
  }
  if (one.level == 1 && one.error.empty()) {
    small_.push_back(one);
    return;
  }
  for (std::string& row : flush()) ready.push_back(std::move(row));
  ready.push_back(row_of(one));
}

// Describes a restart, with the number of ranks by source.
std::string HistoryReader::restart_text(const Line& line) {
  std::map<std::string, std::vector<std::uint32_t>> ranks_from;
  const auto sources = line.fields.find("sources");
  if (sources != line.fields.end() && sources->is_array()) {
    for (std::uint32_t rank = 0; rank < sources->size(); ++rank) {
      const json& source = (*sources)[rank];
      if (source.is_string()) ranks_from[printable(source.get<std::string>())].push_back(rank);
    }
  }
  std::string text = fmt::format("  went on from version {} in {}", line.count("version"),
                                 seconds_text(line.number("seconds")));
  const char* between = ": ";
  for (const auto& [source, ranks] : ranks_from) {
    text += fmt::format("{}rank{} {} from {}", between, ranks.size() == 1 ? "" : "s",
                        numbers_text(ranks), source);
    between = "; ";
  }
  if (line.fields.value("stepped_back", json(false)) == json(true)) {
    text += fmt::format("; newer versions could not be had: {}", line.text("reason"));
  }
  return text;
}

// Returns text such as "schedule: every 320.00 s, of which 1 in 4 at level 3, 1 in 40 at level 4:
// the first choice of this start".
std::string HistoryReader::schedule_text(const Line& line) {
  std::string text = fmt::format("  schedule: every {}", seconds_text(line.number("every_s")));
  const auto levels = line.fields.find("levels");
  const char* between = ", of which ";
  if (levels != line.fields.end() && levels->is_array()) {
    for (const json& entry : *levels) {
      const Line level{entry};
      const std::uint64_t one_in = level.count("one_in");
      if (one_in <= 1) continue;
      text += fmt::format("{}1 in {} at level {}", between, one_in, level.count("level"));
      between = ", ";
    }
  }
  return text + ": " + line.text("reason");
}

std::vector<std::string> HistoryReader::add_line(std::string_view text) {
  std::vector<std::string> ready;
  Line line{json::parse(text, nullptr, false)};
  const auto told = fields::text(line.fields, "event");
  if (!told) {
    ++sums_.damaged_lines;
    return ready;
  }
  if (const auto schema = fields::count(line.fields, "schema").value_or(1);
      schema < 1 || schema > fields::kNewestSchema) {
    sums_.other_schema = schema;
    return ready;
  }
  ++sums_.lines;
  const std::string& event = *told;
  if (event == "checkpoint") {
    add_checkpoint(line, ready);
  } else if (event == "open" || event == "restart" || event == "schedule" || event == "stop" ||
             event == "close") {
    ready = flush();
    if (event == "open") add_open(line, ready);
    if (event == "restart") {
      ++sums_.restarts;
      ready.push_back(restart_text(line));
    }
    if (event == "schedule") ready.push_back(schedule_text(line));
    if (event == "stop") {
      has_ended_ = true;
      ready.push_back(fmt::format("  told to stop: {}", line.text("why")));
    }
    if (event == "close") has_ended_ = sums_.is_closed = true;
  }
  const double time_s = line.number("time_unix_s");
  if (sums_.starts > 0 && time_s > sums_.last_unix_s) sums_.last_unix_s = time_s;
  if (sums_.starts > 0 && time_s > opened_unix_s_) {
    sums_.runtime_s = std::max(sums_.runtime_s, ran_before_s_ + time_s - opened_unix_s_);
  }
  return ready;
}

std::string history_text(const HistorySums& sums) {
  const std::string share =
      sums.runtime_s > 0 ? fmt::format(" ({:.2g} %)", sums.blocked_s / sums.runtime_s * 100) : "";
  std::string text =
      fmt::format("{} held the program up for {:.2f} s of {:.2f} s{}",
                  plural(sums.checkpoints, "checkpoint"), sums.blocked_s, sums.runtime_s, share);
  if (sums.failed > 0) text += fmt::format("; {} of them FAILED", sums.failed);
  return text + fmt::format("; {}, {}, {}", plural(sums.starts, "start"),
                            plural(sums.failures, "failure"), plural(sums.restarts, "restart"));
}

}  // namespace diapause::cli
