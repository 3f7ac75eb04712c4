#include "simulate/trace_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

namespace diapause::simulate {
namespace {

constexpr double kMostSeconds = 1e11;
constexpr std::uint32_t kMostNodes = 100'000'000;

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '"'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

// Returns text of the file for messages. Its control characters must not reach a terminal.
std::string shown(std::string_view text) {
  std::string result(text.substr(0, 40));
  for (char& c : result) c = static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return "'" + result + "'";
}

template <class T>
std::optional<T> number_in(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Returns the days since 1970-01-01 in the Gregorian calendar.
std::int64_t days_of(std::int64_t year, std::int64_t month, std::int64_t day) {
  const std::int64_t y = month <= 2 ? year - 1 : year;
  const std::int64_t era = (y >= 0 ? y : y - 399) / 400;
  const std::int64_t of_era = y - era * 400;
  const std::int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

// Reads a date such as "6/21/05 10:54", with a year of two or four digits.
std::optional<double> seconds_of_date(std::string_view text) {
  std::array<int, 5> parts{};
  constexpr std::string_view kBehind = "// :";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t end = i < kBehind.size() ? text.find(kBehind[i]) : text.size();
    if (end == std::string_view::npos) return std::nullopt;
    const auto part = number_in<int>(text.substr(0, end));
    if (!part || *part < 0) return std::nullopt;
    parts[i] = *part;
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  auto [month, day, year, hour, minute] = parts;
  if (year < 100) year += year < 70 ? 2000 : 1900;
  if (month < 1 || month > 12 || day < 1 || day > 31 || year > 9999 || hour > 23 || minute > 59)
    return std::nullopt;
  return static_cast<double>(days_of(year, month, day)) * 86400 + hour * 3600.0 + minute * 60.0;
}

class TraceReader {
 public:
  TraceReader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Result<FailureTrace> read() {
    DIAPAUSE_TRY(read_head());
    std::string_view line;
    while (next_line(line)) {
      if (line_ > kMostTraceLines) return wrong("has more lines than can be read");
      DIAPAUSE_TRY(split(line));
      DIAPAUSE_TRY(trace_.kind == TraceKind::own          ? read_own()
                   : trace_.kind == TraceKind::los_alamos ? read_los_alamos()
                                                          : read_archive());
    }
    if (trace_.failures.empty()) return wrong("has no failure");
    return finished();
  }

 private:
  tl::unexpected<Error> wrong(const std::string& what) const {
    return fail(Code::config, path_ + ", line " + std::to_string(line_) + ": " + what);
  }

  // Reads the next line, skipping empty lines, and comments behind the head.
  bool next_line(std::string_view& line) {
    while (!text_.empty()) {
      const std::size_t end = std::min(text_.find('\n'), text_.size());
      line = trimmed(text_.substr(0, end));
      text_.remove_prefix(std::min(text_.size(), end + 1));
      ++line_;
      if (!line.empty() && (columns_.empty() || line.front() != '#')) return true;
    }
    return false;
  }

  Status read_head() {
    std::string_view line;
    if (!next_line(line)) return wrong("is empty; the first line names the columns");
    while (!line.empty() && line.front() == '#') line = trimmed(line.substr(1));
    separator_ = line.find('\t') != std::string_view::npos  ? '\t'
                 : line.find(';') != std::string_view::npos ? ';'
                                                            : ',';
    DIAPAUSE_TRY(split(line));
    for (std::size_t i = 0; i < cells_.size(); ++i) columns_.emplace(lower(cells_[i]), i);
    if (has({"time_s", "class", "node"})) return {};
    trace_.kind = TraceKind::los_alamos;
    if (has({"nodenumz", "prob started", "prob fixed"})) return {};
    trace_.kind = TraceKind::failure_trace_archive;
    if (has({"node_id", "event_type", "event_start_time"})) return {};
    return wrong(
        "names neither the columns time_s, class, node, nor those of Los Alamos (nodenumz, Prob "
        "Started, Prob "
        "Fixed), nor those of the Failure Trace Archive (node_id, event_type, event_start_time)");
  }

  bool has(std::initializer_list<const char*> names) const {
    return std::ranges::all_of(names, [&](const char* name) { return columns_.contains(name); });
  }

  Status split(std::string_view line) {
    cells_.clear();
    while (true) {
      const std::size_t end = line.find(separator_);
      cells_.push_back(trimmed(line.substr(0, end)));
      if (cells_.size() > 200) return wrong("has more than 200 columns");
      if (end == std::string_view::npos) return {};
      line.remove_prefix(end + 1);
    }
  }

  // Returns an empty text if the line has no such column.
  std::string_view cell(const char* column) const {
    const auto at = columns_.find(column);
    return at == columns_.end() || at->second >= cells_.size() ? std::string_view()
                                                               : cells_[at->second];
  }

  Result<double> seconds(const char* column) const {
    const auto value = number_in<double>(cell(column));
    if (!value || !(std::abs(*value) <= kMostSeconds)) {
      return wrong(std::string(column) + " is " + shown(cell(column)) +
                   ", which is no number of seconds");
    }
    return *value;
  }

  Result<double> date(const char* column) const {
    const auto value = seconds_of_date(cell(column));
    if (!value)
      return wrong(std::string(column) + " is " + shown(cell(column)) +
                   ", which is no month/day/year hour:minute");
    return *value;
  }

  Result<std::uint32_t> count(const char* column, std::uint32_t most) const {
    const auto value = number_in<std::uint32_t>(cell(column));
    if (!value || *value > most) {
      return wrong(std::string(column) + " is " + shown(cell(column)) +
                   ", which is no whole number from 0 to " + std::to_string(most));
    }
    return *value;
  }

  Status add(const RecordedFailure& failure) {
    if (failure.nodes == 0 || failure.nodes > kMostNodes - failure.first_node)
      return wrong("has no such nodes");
    trace_.nodes = std::max(trace_.nodes, failure.first_node + failure.nodes);
    trace_.failures.push_back(failure);
    return {};
  }

  Status read_own() {
    static const std::map<std::string, Takes, std::less<>> kClasses = {{"process", Takes::process},
                                                                       {"node", Takes::nodes},
                                                                       {"nodes", Takes::nodes},
                                                                       {"system", Takes::all_nodes},
                                                                       {"site", Takes::site}};
    RecordedFailure failure;
    DIAPAUSE_TRY_ASSIGN(failure.time_s, seconds("time_s"));
    if (failure.time_s < 0) return wrong("time_s is negative");
    const auto takes = kClasses.find(cell("class"));
    if (takes == kClasses.end()) {
      return wrong("class is " + shown(cell("class")) +
                   ", not process, node, nodes, system or site");
    }
    failure.takes = takes->second;
    DIAPAUSE_TRY_ASSIGN(failure.first_node, count("node", kMostNodes));
    if (!cell("nodes").empty()) {
      DIAPAUSE_TRY_ASSIGN(failure.nodes, count("nodes", kMostNodes));
    }
    if (!cell("repair_s").empty()) {
      DIAPAUSE_TRY_ASSIGN(failure.repair_s, seconds("repair_s"));
    }
    if (failure.repair_s < 0) return wrong("repair_s is negative");
    return add(failure);
  }

  Status read_los_alamos() {
    RecordedFailure failure;
    DIAPAUSE_TRY_ASSIGN(failure.time_s, date("prob started"));
    DIAPAUSE_TRY_ASSIGN(failure.first_node, count("nodenumz", kMostNodes));
    if (!cell("prob fixed").empty()) {
      DIAPAUSE_TRY_ASSIGN(const double fixed_s, date("prob fixed"));
      if (fixed_s < failure.time_s) return wrong("was fixed before it started");
      failure.repair_s = fixed_s - failure.time_s;
    }
    return add(failure);
  }

  // Events of type 0 are times in which a node was not available.
  Status read_archive() {
    RecordedFailure failure;
    DIAPAUSE_TRY_ASSIGN(const std::uint32_t type, count("event_type", 1000));
    if (type != 0) return {};
    DIAPAUSE_TRY_ASSIGN(failure.time_s, seconds("event_start_time"));
    DIAPAUSE_TRY_ASSIGN(failure.first_node, count("node_id", kMostNodes));
    for (const char* const end : {"event_end_time", "event_stop_time"}) {
      if (cell(end).empty()) continue;
      DIAPAUSE_TRY_ASSIGN(const double end_s, seconds(end));
      if (end_s < failure.time_s) return wrong("ends before it begins");
      failure.repair_s = end_s - failure.time_s;
    }
    return add(failure);
  }

  FailureTrace finished() {
    std::ranges::stable_sort(trace_.failures, {}, &RecordedFailure::time_s);
    if (trace_.kind != TraceKind::own) {
      const double begin_s = trace_.failures.front().time_s;
      for (RecordedFailure& failure : trace_.failures) failure.time_s -= begin_s;
    }
    trace_.length_s = trace_.failures.back().time_s;
    return std::move(trace_);
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t line_ = 0;
  char separator_ = ',';
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::vector<std::string_view> cells_;
  FailureTrace trace_;
};

}  // namespace

Result<FailureTrace> parse_failure_trace(std::string_view text, const std::string& path) {
  return TraceReader(text, path).read();
}

}  // namespace diapause::simulate
