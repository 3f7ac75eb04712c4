// An external meter (PowerInsight, a PDU, a lab's instrument) that appends lines to a CSV file. The
// first line names the columns: "time_s" (or _ms, _us), then rails with their unit, such as
// "node_w", "cpu0_w", "memory_mw", "disk_w" or "gpu_j". A cell without a number is a missing
// reading. energy.stream_offset_s aligns its clock with this machine's.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "energy/meters/registry.hpp"
#include "sys/line_file.hpp"
#include "sys/process.hpp"

namespace diapause::energy {
namespace {

// Older lines than this are useless, because nobody was here then. A line that is as far in the
// future is refused: it would make all later lines too old.
constexpr double kRecentS = 5;
constexpr double kMost =
    1e12;  // W or J; more is no reading, and does not fit into a number of microjoules
constexpr std::uint64_t kTailBytes = 65536;
// The file is taken to get new values at this interval where its lines do not tell.
constexpr double kUsualUpdateS = 1;

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const std::size_t comma = line.find(',');
    std::string_view cell = line.substr(0, comma);
    while (!cell.empty() && (cell.front() == ' ' || cell.front() == '\t')) cell.remove_prefix(1);
    while (!cell.empty() && (cell.back() == ' ' || cell.back() == '\t' || cell.back() == '\r'))
      cell.remove_suffix(1);
    cells.push_back(cell);
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

std::optional<double> number_of(std::string_view cell) {
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

// A unit stands behind the last '_' of a column's name.
struct Unit {
  std::string_view suffix;
  double factor;
};
constexpr Unit kTimes[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}};
constexpr Unit kWatts[] = {{"w", 1}, {"mw", 1e-3}, {"uw", 1e-6}};
constexpr Unit kJoules[] = {{"j", 1}, {"mj", 1e-3}, {"uj", 1e-6}};

const Unit* unit_of(std::string_view suffix, std::span<const Unit> units) {
  const auto found = std::find_if(units.begin(), units.end(),
                                  [&](const Unit& unit) { return unit.suffix == suffix; });
  return found == units.end() ? nullptr : &*found;
}

struct Column {
  std::size_t cell;
  double factor;  // converts to W or J
};

// "cpu0" is package 0. A name that has no meaning here is kept.
void name_rail(std::string_view rail, Zone& zone) {
  const std::size_t digits = rail.find_last_not_of("0123456789") + 1;
  std::string_view word = rail.substr(0, digits);
  if (word == "cpu") word = "package";
  if (word == "memory" || word == "mem") word = "dram";
  const auto found = std::find(kDomainNames.begin(), kDomainNames.end(), word);
  zone.domain = found == kDomainNames.end() ? Domain::other
                                            : static_cast<Domain>(found - kDomainNames.begin());
  zone.part = zone.domain == Domain::other ? rail : rail.substr(digits);
}

// Learns from the lines of a file how often the meter has another value of one column.
class Rhythm {
 public:
  void add(double time_s, double value) {
    if (last_s_ && time_s > *last_s_) lines_s_.push_back(time_s - *last_s_);
    last_s_ = time_s;
    if (value == last_value_) return;
    if (changed_s_ && time_s > *changed_s_) changes_s_.push_back(time_s - *changed_s_);
    changed_s_ = time_s;
    last_value_ = value;
  }

  // Returns the interval at which values change, or the usual one where few lines tell. The meter
  // may show a value several times, and one that happens to stay the same tells nothing.
  double update_s() const {
    if (lines_s_.size() < kLeast) return kUsualUpdateS;
    const double changes_s =
        changes_s_.size() < kLeast ? kUsualUpdateS : std::min(most_of(changes_s_), kUsualUpdateS);
    return std::clamp(std::max(most_of(lines_s_), changes_s), 0.001, 60.0);
  }

 private:
  static constexpr std::size_t kLeast = 3;
  // Returns an interval that few are longer than: the meter may have been off for a while.
  static double most_of(std::vector<double> intervals_s) {
    const auto ninth_tenth =
        intervals_s.begin() + static_cast<std::ptrdiff_t>(intervals_s.size() * 9 / 10);
    std::nth_element(intervals_s.begin(), ninth_tenth, intervals_s.end());
    return *ninth_tenth;
  }

  std::vector<double> lines_s_, changes_s_;  // intervals
  std::optional<double> last_s_, changed_s_, last_value_;
};

class Stream final : public Meter {
 public:
  // `here_s` is added to a time of the file to give sys::monotonic_s().
  Stream(sys::LineFile file, double here_s) : file_(std::move(file)), here_s_(here_s) {}

  Status read_head(const std::string& line) {
    const auto names = cells_of(line);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::size_t bar = names[i].rfind('_');
      const std::string_view suffix = bar == std::string_view::npos ? "" : names[i].substr(bar + 1);
      if (i == 0) {
        const Unit* time = names[i].starts_with("time") ? unit_of(suffix, kTimes) : nullptr;
        if (time == nullptr) return wrong("the first column must be time_s, time_ms or time_us");
        time_factor_ = time->factor;
      } else {
        DIAPAUSE_TRY(add_column(i, names[i], suffix));
      }
    }
    return zones_.empty() ? wrong("there is no column but the time") : Status();
  }

  Status skip_history() { return file_.skip_to_last(kTailBytes); }

  // Reads the last lines that the file has now. `history` is the same file, from its beginning.
  Status learn_updates(sys::LineFile history) {
    DIAPAUSE_TRY(history.next());  // the names of the columns
    DIAPAUSE_TRY(history.skip_to_last(kTailBytes));
    std::vector<Rhythm> rhythms(zones_.size());
    for (std::size_t bytes = 0; bytes < kTailBytes;) {
      DIAPAUSE_TRY_ASSIGN(const auto line, history.next());
      if (!line) break;
      bytes += line->size() + 1;
      const auto cells = cells_of(*line);
      const auto time = number_of(cells[0]);
      for (std::size_t i = 0; time && i < columns_.size(); ++i) {
        const auto value = value_in(cells, columns_[i]);
        if (value) rhythms[i].add(*time * time_factor_, *value);
      }
    }
    for (std::size_t i = 0; i < zones_.size(); ++i) {
      zones_[i].update_s = rhythms[i].update_s();
      recent_s_ = std::max(recent_s_, 1.5 * zones_[i].update_s);
    }
    return {};
  }

  std::string_view name() const override { return "stream"; }
  const std::vector<Zone>& zones() const override { return zones_; }

  void read(double now_s, std::vector<Reading>& out) override {
    off_s_ = 0;
    while (true) {
      auto line = file_.next();
      if (!line) {
        for (std::size_t i = 0; i < zones_.size(); ++i)
          out.push_back({i, now_s, fail(line.error())});
        return;
      }
      if (!*line) break;
      read_row(**line, now_s, out);
    }
    if (off_s_ == 0) return;
    const std::string why =
        fmt::format("{} has a line that is {:.1f} s {} the clock here; see energy.stream_offset_s",
                    file_.path(), std::abs(off_s_), off_s_ > 0 ? "ahead of" : "behind");
    for (std::size_t i = 0; i < zones_.size(); ++i) out.push_back({i, now_s, fail(Code::io, why)});
  }

 private:
  Status wrong(const std::string& what) const {
    return fail(Code::config, file_.path() + ":1: " + what);
  }

  Status add_column(std::size_t cell, std::string_view name, std::string_view suffix) {
    const Unit* watts = unit_of(suffix, kWatts);
    const Unit* joules = unit_of(suffix, kJoules);
    if (watts == nullptr && joules == nullptr) {
      return wrong(
          fmt::format("column '{}' must end in its unit: _w, _mw, _uw, _j, _mj or _uj", name));
    }
    Zone zone;
    zone.source = fmt::format("stream {}", name);
    name_rail(name.substr(0, name.size() - suffix.size() - 1), zone);
    zone.quantity = watts != nullptr ? Quantity::power : Quantity::energy;
    zone.resolution_j = zone.unit;
    zones_.push_back(std::move(zone));
    columns_.push_back({cell, watts != nullptr ? watts->factor : joules->factor});
    return {};
  }

  void read_row(const std::string& line, double now_s, std::vector<Reading>& out) {
    const auto cells = cells_of(line);
    const auto time = number_of(cells[0]);
    if (!time) return;
    const double time_s = *time * time_factor_ + here_s_;
    const bool is_old = time_s < now_s - recent_s_ && !has_recent_;
    off_s_ = is_old || time_s > now_s + kRecentS ? time_s - now_s : 0;
    if (off_s_ != 0) return;
    has_recent_ = true;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const auto value = value_in(cells, columns_[i]);
      // A meter's noise goes below 0 where hardly any power is drawn.
      if (value)
        out.push_back({i, time_s, static_cast<std::uint64_t>(std::max(0.0, *value * 1e6))});
    }
  }

  // Returns W or J.
  static std::optional<double> value_in(const std::vector<std::string_view>& cells,
                                        const Column& column) {
    const auto value = column.cell < cells.size() ? number_of(cells[column.cell]) : std::nullopt;
    if (!value || *value * column.factor > kMost) return std::nullopt;
    return *value * column.factor;
  }

  sys::LineFile file_;
  const double here_s_;
  double time_factor_ = 1;
  std::vector<Zone> zones_;
  std::vector<Column> columns_;  // one for each zone
  double recent_s_ = kRecentS;
  bool has_recent_ = false;
  // This is how far the time of the last line was off if that line was left out for it, and else 0.
  double off_s_ = 0;
};

Result<std::unique_ptr<Meter>> open(const Environment& environment) {
  const std::string& path = environment.settings.stream;
  DIAPAUSE_TRY_ASSIGN(auto file, sys::LineFile::open(environment.kernel, path));
  DIAPAUSE_TRY_ASSIGN(const auto line, file.next());
  if (!line) return fail(Code::config, path + " has no first line, which names the columns");
  const double monotonic_of_unix_s =
      sys::monotonic_s() - static_cast<double>(sys::unix_time_ns()) / 1e9;
  auto meter = std::make_unique<Stream>(std::move(file),
                                        monotonic_of_unix_s + environment.settings.stream_offset_s);
  DIAPAUSE_TRY(meter->read_head(*line));
  DIAPAUSE_TRY(meter->skip_history());
  DIAPAUSE_TRY_ASSIGN(auto history, sys::LineFile::open(environment.kernel, path));
  DIAPAUSE_TRY(meter->learn_updates(std::move(history)));
  return meter;
}

}  // namespace

Discovery discover_stream(const Environment& environment) {
  if (environment.settings.stream.empty()) return {};
  auto meter = open(environment);
  if (!meter) return {nullptr, {{"stream", meter.error().message}}};
  return {std::move(*meter), {}};
}

}  // namespace diapause::energy
