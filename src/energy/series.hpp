// The energy of one zone over time.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "energy/accumulator.hpp"

namespace diapause::energy {

// What a source says about a stretch of time.
struct Amount {
  double joules = 0;         // used in the seconds that are covered
  double uncertainty_j = 0;  // either way, of the ends: docs/energy.md; a model's own error is not in it
  double gap_s = 0;          // seconds of the stretch of which the source knows nothing
  double covered_s = 0;      // the others
  bool has_gap() const { return gap_s > 0; }
};

// What parts that were asked of the same stretch say together. Each goes on with its own mean power where it knows
// nothing, as far as the power of the sum is concerned: of that, joules over covered_s is the sum. Nothing is covered
// if a part knows nothing at all.
Amount add_up(std::span<const Amount> parts);

// Points in the order of time. Holds kMostPoints of them: before there would be more, every second one of the older
// half goes, so that nothing is ever too long ago, and only known more coarsely.
class Series {
 public:
  static constexpr std::size_t kMostPoints = 8192;

  // `update_s`: how often the source changes. For 1.5 times as long, what it told last is taken to go on. `lag_s`: how
  // old a reading may be when it is taken.
  Series(double update_s, double lag_s) : update_s_(update_s), lag_s_(lag_s) {}

  // The time must be later than that of the last point.
  void add(const Point& point);
  bool empty() const { return points_.empty(); }
  const Point& last() const { return points_.back(); }

  // The point at a time between two that are known lies on the line between them; before the first and long after the
  // last nothing is covered.
  Point at(double time_s) const;
  // `resolution_j`: of the zone. An end before the beginning gives nothing.
  Amount between(double from_s, double to_s, double resolution_j) const;

 private:
  // Between two readings, or behind the last one, without an end.
  struct Interval {
    double from_s, to_s;
    double watts;
  };
  Interval interval_at(double time_s) const;
  double most_w(const Interval& interval) const;
  double part_error_j(const Interval& interval, double seconds) const;
  double error_j(double from_s, double to_s) const;

  double update_s_;
  double lag_s_;
  double highest_w_ = 0;  // that was ever shown
  std::vector<Point> points_;
};

}  // namespace diapause::energy
