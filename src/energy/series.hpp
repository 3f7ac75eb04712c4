// Holds the energy of one zone over time.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "energy/accumulator.hpp"

namespace diapause::energy {

// Says how far joules may be off, either way, by cause (docs/energy.md, "Uncertainty").
struct Uncertainty {
  double sampling_j = 0;     // samples are apart in time, which causes an error at both ends
  double sensor_j = 0;       // the source itself is off, by the same share everywhere
  double attribution_j = 0;  // who is charged (charge.hpp)
  // It is false if nobody knows how far the source is off. Then sensor_j is no bound.
  bool is_bounded = true;

  double together_j() const { return sampling_j + sensor_j + attribution_j; }
  // Adds bounds of what may err with the same sign.
  void add(const Uncertainty& more) {
    sampling_j += more.sampling_j;
    sensor_j += more.sensor_j;
    attribution_j += more.attribution_j;
    is_bounded = is_bounded && more.is_bounded;
  }
};

// This is what a source says about a stretch of time.
struct Amount {
  double joules = 0;     // used in the seconds that are covered
  Uncertainty off;       // docs/energy.md
  double gap_s = 0;      // seconds of the stretch about which the source knows nothing
  double covered_s = 0;  // the other seconds of the stretch
  // These are what the beginning and the end of the stretch add to off.sampling_j. Where two
  // stretches meet, one has too much what the other has too little.
  double begin_off_j = 0;
  double end_off_j = 0;
  bool has_gap() const { return gap_s > 0; }
};

// Returns what parts that were asked of the same stretch say together. As far as the power of the
// sum is concerned, each part goes on with its own mean power where it knows nothing, so that
// joules over covered_s is the sum of these powers. Nothing is covered if a part knows nothing at
// all.
Amount add_up(std::span<const Amount> parts);

// Holds at most kMostPoints points in the order of time. Before there would be more, every second
// one of the older half goes, so that nothing is ever too long ago, and only known more coarsely.
class Series {
 public:
  static constexpr std::size_t kMostPoints = 8192;

  // A source has these fields of a zone. For 1.5 times `update_s`, what it told last is taken to go
  // on.
  struct Source {
    double update_s = 0;
    double lag_s = 0;   // how old a reading may be when it is taken
    double peak_w = 0;  // the highest power that it can have; 0: not known
    double resolution_j = 0;
    Accuracy accuracy = {};
  };
  explicit Series(Source source) : source_(std::move(source)) {}

  // The time must be later than that of the last point. A point at which the source has stood still
  // for longer than it should says nothing of the time since it moved, and holds until the next.
  void add(const Point& point);
  bool empty() const { return points_.empty(); }
  const Point& first() const { return points_.front(); }
  // The last point at which the source did not stand still.
  const Point& last() const { return points_.back(); }

  // The point at a time between two that are known lies on the line between them; before the first
  // and long after the last nothing is covered.
  Point at(double time_s) const;
  // An end before the beginning gives nothing.
  Amount between(double from_s, double to_s) const;
  // The energy since the first point lies between these two, whatever the power was between the
  // readings. There must be a point.
  struct Band {
    double least_j, most_j;
  };
  Band band(double time_s) const;
  // Says how far at() may be off, either way, because readings are apart in time, and with the
  // resolution of the source. It is 0 where there is no point.
  double off_at(double time_s) const;

 private:
  double peak_w() const;
  double off_in(const Band& band, double told_j) const;

  Source source_;
  double highest_w_ = 0;  // highest power that was ever shown
  std::vector<Point> points_;
  std::optional<Point> still_;  // the newest point, if the source stands still
};

}  // namespace diapause::energy
