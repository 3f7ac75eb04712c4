#include "energy/accumulator.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace diapause::energy {
namespace {

// One or two missing readings of power are bridged.
constexpr double kBridgedPeriods = 3.5;
// After a stall a step is not believed if its power is below this share of the lowest one so far.
constexpr double kLeastOfLowest = 0.5;
// perf counts in steps of 2^-32 J, so 64 bits are full after weeks of a large node.
constexpr std::uint64_t kMostExactCounts = std::uint64_t{1} << 60;
// A counter goes round only if its power is at most so many times the highest one before.
constexpr double kMostRise = 5;

double patience_of(const Zone& zone, double period_s) {
  const double slower_s = std::max(zone.update_s, period_s);
  return zone.quantity == Quantity::power
             ? kBridgedPeriods * slower_s
             : std::max(Accumulator::kStallS, kBridgedPeriods * slower_s);
}

}  // namespace

Accumulator::Accumulator(const Zone& zone, double period_s)
    : quantity_(zone.quantity),
      unit_(zone.unit),
      range_(zone.range),
      most_w_(zone.most_w),
      peak_w_(zone.peak_w > 0 ? zone.peak_w : zone.most_w),
      update_s_(zone.update_s),
      patience_s_(patience_of(zone, period_s)) {}

std::optional<Point> Accumulator::add(double time_s, std::uint64_t count) {
  if (has_begun_ && time_s <= last_time_s_) return std::nullopt;
  return quantity_ == Quantity::energy ? add_energy(time_s, count) : add_power(time_s, count);
}

Point Accumulator::point(double time_s) const {
  return {time_s, joules_ + static_cast<double>(counts_) * unit_, covered_s_};
}

Point Accumulator::restart(double time_s, std::uint64_t count) {
  has_begun_ = true;
  last_count_ = count;
  last_time_s_ = moved_time_s_ = time_s;
  last_w_.reset();
  doubted_.reset();
  covered_moved_s_ = covered_s_;
  return point(time_s);
}

// Returns the counts between the last reading and this one if exactly one answer makes sense.
std::optional<std::uint64_t> Accumulator::step(double dt_s, std::uint64_t count) const {
  // The last reading may have been as old as the source lets its values become.
  const double longest_s = dt_s + update_s_;
  if (range_ != 0 && peak_w_ * longest_s >= static_cast<double>(range_) * unit_)
    return std::nullopt;
  if (count < last_count_ && (range_ == 0 || last_count_ > range_)) return std::nullopt;
  const std::uint64_t counts =
      count >= last_count_ ? count - last_count_ : range_ - last_count_ + count;
  const double joules = static_cast<double>(counts) * unit_;
  // After a silence, a counter that was reset looks like one that went round.
  const bool has_gone_round = count < last_count_;
  if (has_gone_round && has_moved_ && joules > kMostRise * highest_w_ * longest_s + 2 * unit_) {
    return std::nullopt;
  }
  // A source that shows joules at once may have collected them since it last changed.
  return joules <= most_w_ * longest_s + 2 * unit_ ? std::optional(counts) : std::nullopt;
}

std::optional<Point> Accumulator::add_energy(double time_s, std::uint64_t count) {
  if (!has_begun_) return restart(time_s, count);
  if (count == 0 && last_count_ != 0) {
    ++accidents_;
    return std::nullopt;
  }
  if (count == last_count_) return stand_still(time_s);
  const double dt_s = time_s - moved_time_s_;
  const auto counts = step(dt_s, count);
  if (!counts) {
    // One such reading may be an accident, and the counter then goes on as before. Two of them mean
    // that the counter was reset.
    if (doubted_) {
      covered_s_ = covered_moved_s_;
      restart(doubted_->time_s, doubted_->count);
      return add_energy(time_s, count);
    }
    ++accidents_;
    doubted_ = {time_s, count};
    return std::nullopt;
  }
  doubted_.reset();
  const double joules = static_cast<double>(*counts) * unit_;
  if (has_lost_count(time_s, joules)) {
    ++accidents_;
    covered_s_ = covered_moved_s_;
    return restart(time_s, count);
  }
  note_lowest_power(dt_s, joules);
  counts_ += *counts;
  if (counts_ > kMostExactCounts) joules_ += static_cast<double>(std::exchange(counts_, 0)) * unit_;
  highest_w_ = std::max(highest_w_, joules / (dt_s + update_s_));
  has_moved_ = true;
  last_count_ = count;
  last_time_s_ = moved_time_s_ = time_s;
  covered_s_ = covered_moved_s_ = covered_moved_s_ + dt_s;
  return point(time_s);
}

// A counter that stands still may have stopped, or it may show later what it counts meanwhile. If
// it stands still for longer than a while, no part of that time counts as known.
Point Accumulator::stand_still(double time_s) {
  doubted_.reset();
  const double still_s = time_s - moved_time_s_;
  // Nothing is known about a counter that was never seen to move.
  if (has_moved_ && still_s <= patience_s_) covered_s_ += time_s - last_time_s_;
  if (still_s > patience_s_) covered_s_ = covered_moved_s_;
  last_time_s_ = time_s;
  Point still = point(time_s);
  still.stood_still_s = still_s;
  return still;
}

// The step before a stall may lack what the counter failed to count. A step is therefore taken into
// account only when the next one has followed without a stall.
void Accumulator::note_lowest_power(double dt_s, double joules) {
  const bool stood_still = last_time_s_ - moved_time_s_ > kStillUpdates * update_s_;
  if (last_w_ && !stood_still) lowest_w_ = std::min(lowest_w_, *last_w_);
  last_w_.reset();
  if (has_moved_) last_w_ = joules / dt_s;
}

// Returns whether a counter that was seen to stand still and goes on has lost what was used
// meanwhile. It has if over all that time it shows much less power than ever before. After a long
// time it may have lost energy if it shows no more than what was used since the last reading.
bool Accumulator::has_lost_count(double time_s, double joules) const {
  const double still_s = last_time_s_ - moved_time_s_;
  if (still_s <= kStillUpdates * update_s_) return false;
  if (std::isfinite(lowest_w_) &&
      joules + unit_ < kLeastOfLowest * lowest_w_ * (time_s - moved_time_s_))
    return true;
  return still_s > patience_s_ && joules < highest_w_ * (time_s - last_time_s_ + update_s_) + unit_;
}

std::optional<Point> Accumulator::add_power(double time_s, std::uint64_t count) {
  const double watts = static_cast<double>(count) * unit_;
  if (count == 0 || watts > most_w_) {
    ++accidents_;
    return std::nullopt;
  }
  has_moved_ = true;
  const double dt_s = time_s - last_time_s_;
  if (!has_begun_ || dt_s > patience_s_) return restart(time_s, count);
  joules_ += (static_cast<double>(last_count_) * unit_ + watts) / 2 * dt_s;
  covered_s_ += dt_s;
  last_count_ = count;
  last_time_s_ = time_s;
  return point(time_s);
}

}  // namespace diapause::energy
