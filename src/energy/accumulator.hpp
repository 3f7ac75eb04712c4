// Turns the raw readings of one zone into energy since the first of them. The code is pure: it uses
// no clock and no files.
//
// A counter adds the difference of two readings, modulo its range. Power is integrated by the
// trapezoidal rule. Energy that is not known is not guessed. It is left out of the joules, and its
// time is left out of the seconds that the joules stand for:
//   - A zero is no reading, because counters and sensors give one now and then. The next reading
//     counts from the last one that made sense.
//   - A counter that stands still for longer than kStallS is a gap since it moved last. If it goes
//     on and has counted all the while, the time is covered after all. If over that time it shows
//     less than half of the lowest power so far, it has lost its count, and the time remains a gap.
//   - A step that the zone's most_w cannot explain is no reading. If the next reading does not fit
//     either, the counter was set anew: there is a gap since it moved last, and a new beginning.
//   - A round of which the power would be far above any before is treated in the same way.
//   - A pause in which the counter may have gone round unseen is a gap. The highest power that the
//     zone can have decides, because nobody knows the power meanwhile.
//   - Two readings of power that are too far apart leave a gap.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "energy/meter.hpp"

namespace diapause::energy {

// A counter that shows the same for longer than so many of its updates stands still.
inline constexpr double kStillUpdates = 1.05;

// A point has the energy since the first reading, and for how much of the time since then it
// stands.
struct Point {
  double time_s = 0;
  double joules = 0;
  double covered_s = 0;
  // For so long the counter had shown the same value by then. It may show later what was used
  // meanwhile.
  double stood_still_s = 0;
};

class Accumulator {
 public:
  static constexpr double kStallS = 2;  // It is longer if the source itself changes more rarely.

  // A reading is expected every `period_s` seconds.
  Accumulator(const Zone& zone, double period_s);

  // Takes a reading of the zone, and returns the point that follows from it. There is none after a
  // zero, after an accident, or if time did not go on.
  std::optional<Point> add(double time_s, std::uint64_t count);
  // Takes a reading before which there is a gap since the last reading.
  Point restart(double time_s, std::uint64_t count);

  bool has_moved() const { return has_moved_; }           // energy was seen to be used
  std::uint64_t accidents() const { return accidents_; }  // readings that made no sense

 private:
  std::optional<Point> add_energy(double time_s, std::uint64_t count);
  std::optional<Point> add_power(double time_s, std::uint64_t count);
  Point stand_still(double time_s);
  std::optional<std::uint64_t> step(double dt_s, std::uint64_t count) const;
  void note_lowest_power(double dt_s, double joules);
  bool has_lost_count(double time_s, double joules) const;
  Point point(double time_s) const;

  const Quantity quantity_;
  const double unit_;
  const std::uint64_t range_;
  const double most_w_;
  const double peak_w_;
  const double update_s_;
  // For a counter, the time until it is stalled; for power, until readings are too far apart.
  const double patience_s_;

  bool has_begun_ = false;
  bool has_moved_ = false;
  std::uint64_t last_count_ = 0;
  double last_time_s_ = 0;        // time of the last reading that counted
  double moved_time_s_ = 0;       // when the counter was seen to move last
  double highest_w_ = 0;          // highest power of all steps so far
  std::optional<double> last_w_;  // power of the last step, if it began with a step
  double lowest_w_ = std::numeric_limits<double>::infinity();
  std::uint64_t counts_ = 0;    // a counter's energy, exact
  double joules_ = 0;           // integrated power; for a counter, what no longer fits into counts_
  double covered_s_ = 0;        // seconds covered up to last_time_s_
  double covered_moved_s_ = 0;  // seconds covered up to moved_time_s_
  std::uint64_t accidents_ = 0;
  struct Doubted {
    double time_s;
    std::uint64_t count;
  };
  std::optional<Doubted> doubted_;  // the reading before, if it made no sense
};

}  // namespace diapause::energy
