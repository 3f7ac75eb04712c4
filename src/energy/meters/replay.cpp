// Plays a recorded trace (docs/formats/trace.md) from the moment at which it is opened, as if its
// sources were here. It is for machines without counters, and for tests of everything that depends
// on energy.
#include <fmt/core.h>

#include <algorithm>

#include "energy/meters/registry.hpp"
#include "energy/trace.hpp"
#include "sys/line_file.hpp"

namespace diapause::energy {
namespace {

// Two values of the file are rounded.
constexpr double kLeastCoveredS = 2e-6;

class Replay final : public Meter {
 public:
  Replay(sys::LineFile file, TraceHead head)
      : file_(std::move(file)), zones_(std::move(head.domains)) {
    for (Zone& zone : zones_) {
      zone.source = "replay of " + zone.source;
      zone.is_replayed = true;
      zone.resolution_j = std::max(zone.resolution_j, zone.unit);
      zone.update_s = std::max(zone.update_s, head.period_s);
    }
    last_.resize(zones_.size());
  }

  std::string_view name() const override { return "replay"; }
  const std::vector<Zone>& zones() const override { return zones_; }

  void read(double now_s, std::vector<Reading>& out) override {
    if (began_s_ < 0) began_s_ = now_s;
    trouble_.clear();
    while (const TraceRow* row = next_row(now_s - began_s_)) play(*row, out);
    if (trouble_.empty()) return;
    for (std::size_t i = 0; i < zones_.size(); ++i)
      out.push_back({i, now_s, fail(Code::io, trouble_)});
  }

 private:
  // Returns the next row whose time has come, or null.
  const TraceRow* next_row(double until_s) {
    if (!has_row_) read_row();
    if (!has_row_ || row_.time_s > until_s) return nullptr;
    has_row_ = false;
    return &row_;
  }

  void read_row() {
    const auto line = file_.next();
    if (line && !*line) {
      trouble_ = file_.path() + " has come to its end";
      return;
    }
    ++line_;
    auto row = line ? parse_trace_row(**line, zones_.size()) : tl::unexpected(line.error());
    has_row_ = row.has_value();
    if (row) {
      row_ = std::move(*row);
    } else {
      trouble_ = fmt::format("{}:{}: {}", file_.path(), line_, row.error().message);
    }
  }

  // A gap of the trace is a gap here. Where nothing moved, not even the seconds, the source had not
  // told yet, so the next value may stand for that time, too.
  void play(const TraceRow& row, std::vector<Reading>& out) {
    for (std::size_t i = 0; i < zones_.size(); ++i) {
      const Point& point = row.points[i];
      const bool has_moved =
          point.joules != last_[i].joules || point.covered_s != last_[i].covered_s;
      if (!is_first_ && !has_moved) continue;
      const double missing_s =
          point.time_s - last_[i].time_s - (point.covered_s - last_[i].covered_s);
      const bool is_gap = !is_first_ && missing_s > kLeastCoveredS;
      out.push_back(
          {i, began_s_ + row.time_s, static_cast<std::uint64_t>(point.joules * 1e6) + 1, is_gap});
      last_[i] = point;
    }
    is_first_ = false;
  }

  sys::LineFile file_;
  std::vector<Zone> zones_;
  std::vector<Point> last_;  // the last row of each zone
  bool is_first_ = true;
  double began_s_ = -1;
  std::uint64_t line_ = 1;
  TraceRow row_;
  bool has_row_ = false;
  std::string trouble_;  // the reason why there is no next row
};

Result<std::unique_ptr<Meter>> open(sys::Kernel& kernel, const std::string& path) {
  DIAPAUSE_TRY_ASSIGN(auto file, sys::LineFile::open(kernel, path));
  DIAPAUSE_TRY_ASSIGN(const auto line, file.next());
  auto head = line ? parse_trace_head(*line) : fail(Code::corrupt, "is empty");
  if (!head) return fail(Code::corrupt, path + " " + head.error().message);
  return std::make_unique<Replay>(std::move(file), std::move(*head));
}

}  // namespace

Discovery discover_replay(const Environment& environment) {
  const std::string& path = environment.settings.trace;
  if (path.empty()) return {};
  auto meter = open(environment.kernel, path);
  if (!meter) return {nullptr, {{"replay", meter.error().message}}};
  return {std::move(*meter), {}};
}

}  // namespace diapause::energy
