#include "energy/accumulator.hpp"

#include <algorithm>
#include <utility>

namespace diapause::energy {
namespace {

// Power: readings are bridged where one or two are missing.
constexpr double kBridgedPeriods = 3.5;
// perf counts in steps of 2^-32 J, so that 64 bits are full after weeks of a large node.
constexpr std::uint64_t kMostExactCounts = std::uint64_t{1} << 60;
constexpr double kMostRise =
    5;  // of the mean power from one reading to the next, for a counter that goes round

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
  doubted_.reset();
  covered_moved_s_ = covered_s_;
  return point(time_s);
}

// The counts between the last reading and this one, if there is one answer that makes sense.
std::optional<std::uint64_t> Accumulator::step(double dt_s, std::uint64_t count) const {
  if (range_ != 0 && peak_w_ * dt_s >= static_cast<double>(range_) * unit_) return std::nullopt;
  if (count < last_count_ && (range_ == 0 || last_count_ > range_)) return std::nullopt;
  const std::uint64_t counts =
      count >= last_count_ ? count - last_count_ : range_ - last_count_ + count;
  const double joules = static_cast<double>(counts) * unit_;
  // After a silence, a counter that was set anew looks like one that went round.
  const bool has_gone_round = count < last_count_;
  if (has_gone_round && has_moved_ &&
      joules > kMostRise * highest_w_ * (dt_s + update_s_) + 2 * unit_) {
    return std::nullopt;
  }
  // What a source adds at once it may have collected since it changed last.
  return joules <= most_w_ * (dt_s + update_s_) + 2 * unit_ ? std::optional(counts) : std::nullopt;
}

std::optional<Point> Accumulator::add_energy(double time_s, std::uint64_t count) {
  if (!has_begun_) return restart(time_s, count);
  if (count == 0 && last_count_ != 0) {
    ++accidents_;
    return std::nullopt;
  }
  if (count == last_count_) {
    // Not yet alive is no stall: nothing is known of a counter that was never seen to move.
    if (has_moved_ && time_s - moved_time_s_ <= patience_s_) covered_s_ += time_s - last_time_s_;
    last_time_s_ = time_s;
    doubted_.reset();
    return point(time_s);
  }
  const double dt_s = time_s - moved_time_s_;
  const auto counts = step(dt_s, count);
  if (!counts) {
    // One may be an accident of the reading, and the counter goes on as before; two are one of the
    // counter.
    if (doubted_) {
      restart(doubted_->time_s, doubted_->count);
      return add_energy(time_s, count);
    }
    ++accidents_;
    doubted_ = {time_s, count};
    return std::nullopt;
  }
  doubted_.reset();
  counts_ += *counts;
  if (counts_ > kMostExactCounts) joules_ += static_cast<double>(std::exchange(counts_, 0)) * unit_;
  highest_w_ = std::max(highest_w_, static_cast<double>(*counts) * unit_ / (dt_s + update_s_));
  has_moved_ = true;
  last_count_ = count;
  last_time_s_ = moved_time_s_ = time_s;
  covered_s_ = covered_moved_s_ = covered_moved_s_ + dt_s;
  return point(time_s);
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
