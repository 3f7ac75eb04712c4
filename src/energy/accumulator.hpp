// From the raw readings of one zone to energy since the first of them. Pure: no clock, no files.
//
// A counter adds the difference of two readings, modulo its range. Power is integrated by the
// trapezoidal rule. What is not known is not guessed: it is left out of the energy, and of the
// seconds that the energy stands for.
//   - a zero is no reading (counters and sensors give one now and then): the next reading counts
//   from the last one
//   - a counter that stands still for kStallS is a gap, until it goes on; if it then has counted
//   all the time, the time
//     is made up for
//   - a step that the zone's most_w cannot explain is no reading; if the next one does not fit
//   either, the counter was
//     set anew: a gap, and a new beginning
//   - so is a round of which the power would be far more than any before
//   - a pause in which the counter may have gone round unseen is a gap: judged by the highest power
//   that the zone can
//     have, as nobody knows what it had meanwhile
//   - readings of power that are too far apart are a gap
#pragma once

#include <cstdint>
#include <optional>

#include "energy/meter.hpp"

namespace diapause::energy {

// Energy since the first reading, and for how much of the time since then it stands.
struct Point {
  double time_s = 0;
  double joules = 0;
  double covered_s = 0;
};

class Accumulator {
 public:
  static constexpr double kStallS = 2;  // longer if the source itself changes more rarely

  // `period_s`: how far apart readings are meant to be.
  Accumulator(const Zone& zone, double period_s);

  // Takes a reading of the zone. The point that follows from it; none if nothing does: before the
  // first reading, after a zero or an accident, or if time did not go on.
  std::optional<Point> add(double time_s, std::uint64_t count);
  // The same, but what was since the last reading is a gap.
  Point restart(double time_s, std::uint64_t count);

  bool has_moved() const { return has_moved_; }           // energy was seen to be used
  std::uint64_t accidents() const { return accidents_; }  // readings that made no sense

 private:
  std::optional<Point> add_energy(double time_s, std::uint64_t count);
  std::optional<Point> add_power(double time_s, std::uint64_t count);
  std::optional<std::uint64_t> step(double dt_s, std::uint64_t count) const;
  Point point(double time_s) const;

  const Quantity quantity_;
  const double unit_;
  const std::uint64_t range_;
  const double most_w_;
  const double peak_w_;
  const double update_s_;
  // A counter: until it is stalled; power: until readings are too far apart.
  const double patience_s_;

  bool has_begun_ = false;
  bool has_moved_ = false;
  std::uint64_t last_count_ = 0;
  double last_time_s_ = 0;      // of the last reading that counted
  double moved_time_s_ = 0;     // when the counter was seen to move last
  double highest_w_ = 0;        // of all steps so far
  std::uint64_t counts_ = 0;    // a counter's energy, exact
  double joules_ = 0;           // integrated power; of a counter, what has outgrown counts_
  double covered_s_ = 0;        // up to last_time_s_
  double covered_moved_s_ = 0;  // up to moved_time_s_
  std::uint64_t accidents_ = 0;
  struct Doubted {
    double time_s;
    std::uint64_t count;
  };
  std::optional<Doubted> doubted_;  // the reading before, if it made no sense
};

}  // namespace diapause::energy
