#include "energy/series.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace diapause::energy {
namespace {

// Sums of many short stretches do not meet in the last bit, and nobody's source is as exact as this.
constexpr double kLeastGapS = 1e-6;
constexpr double kLeastCoveredS = 1e-9;
constexpr double kHeldUpdates = 1.5;

auto first_not_before(const std::vector<Point>& points, double time_s) {
  return std::lower_bound(points.begin(), points.end(), time_s,
                          [](const Point& point, double time) { return point.time_s < time; });
}

}  // namespace

void Series::add(const Point& point) {
  if (!points_.empty()) {
    // What a source shows at once it may have collected for as long as it lags.
    const double seconds = point.time_s - points_.back().time_s + lag_s_;
    highest_w_ = std::max(highest_w_, (point.joules - points_.back().joules) / seconds);
  }
  if (points_.size() >= kMostPoints) {
    const std::size_t half = points_.size() / 2;
    for (std::size_t i = 0; i < half / 2; ++i) points_[i] = points_[2 * i];
    points_.erase(points_.begin() + static_cast<std::ptrdiff_t>(half / 2),
                  points_.begin() + static_cast<std::ptrdiff_t>(half));
  }
  points_.push_back(point);
}

Point Series::at(double time_s) const {
  if (points_.empty()) return {time_s, 0, 0};
  const Point& last = points_.back();
  if (time_s <= points_.front().time_s) return {time_s, points_.front().joules, points_.front().covered_s};
  if (points_.size() == 1) return {time_s, last.joules, last.covered_s};
  const bool is_later = time_s > last.time_s;
  const auto after = is_later ? points_.end() - 1 : first_not_before(points_, time_s);
  const auto before = after - 1;
  const double until_s = is_later ? std::min(time_s, last.time_s + kHeldUpdates * update_s_) : time_s;
  const double share = (until_s - before->time_s) / (after->time_s - before->time_s);
  return {time_s, std::lerp(before->joules, after->joules, share),
          std::lerp(before->covered_s, after->covered_s, share)};
}

Series::Interval Series::interval_at(double time_s) const {
  const bool is_later = time_s > points_.back().time_s;
  const auto found = is_later ? points_.end() - 1 : first_not_before(points_, time_s);
  const auto after = std::max(found, points_.begin() + 1);
  const auto before = after - 1;
  const double watts = (after->joules - before->joules) / (after->time_s - before->time_s);
  if (is_later) return {after->time_s, std::numeric_limits<double>::infinity(), watts};
  return {before->time_s, after->time_s, watts};
}

double Series::most_w(const Interval& interval) const { return std::max(highest_w_, 2 * interval.watts); }

// What the energy of so many seconds at one end of the interval may be off: there it is taken to be as much as its part
// of the time, but the power may have been anything up to the most, and 0.
double Series::part_error_j(const Interval& interval, double seconds) const {
  const double whole_s = interval.to_s - interval.from_s;
  const double most = most_w(interval);
  const double taken_j = interval.watts * seconds;
  const double whole_j = std::isinf(whole_s) ? whole_s : interval.watts * whole_s;
  const double most_j = std::min(whole_j, most * seconds);
  const double least_j = std::max(0.0, most * seconds - (most - interval.watts) * whole_s);
  return std::max(most_j - taken_j, taken_j - least_j);
}

double Series::error_j(double from_s, double to_s) const {
  from_s = std::max(from_s, points_.front().time_s);
  if (points_.size() < 2 || to_s <= from_s) return 0;
  const Interval first = interval_at(from_s);
  const Interval last = interval_at(to_s);
  const bool is_inside = first.from_s == last.from_s;
  const double ends_j = is_inside ? part_error_j(first, to_s - from_s)
                                  : part_error_j(first, first.to_s - from_s) + part_error_j(last, to_s - last.from_s);
  const double read_j = (first.watts + last.watts) * lag_s_;
  // However little is known, it is between nothing and the most power for all of the time.
  const double taken_j = at(to_s).joules - at(from_s).joules;
  const double most_j = std::max(most_w(first), most_w(last)) * (to_s - from_s);
  return std::min(ends_j + read_j, std::max(taken_j, most_j - taken_j));
}

Amount add_up(std::span<const Amount> parts) {
  if (parts.empty()) return {};
  Amount sum{0, 0, 0, parts.front().covered_s};
  const double seconds = parts.front().covered_s + parts.front().gap_s;
  double longest_s = 0;
  double watts = 0;
  for (const Amount& part : parts) {
    sum.joules += part.joules;
    sum.uncertainty_j += part.uncertainty_j;
    sum.gap_s = std::max(sum.gap_s, part.gap_s);
    sum.covered_s = std::min(sum.covered_s, part.covered_s);
    longest_s = std::max(longest_s, part.covered_s);
    if (part.covered_s > 0) watts += part.joules / part.covered_s;
  }
  if (!sum.has_gap() || !(sum.covered_s > 0) || !(watts > 0)) return sum;
  sum.covered_s = std::clamp(sum.joules / watts, sum.covered_s, longest_s);
  sum.gap_s = std::max(0.0, seconds - sum.covered_s);
  return sum;
}

Amount Series::between(double from_s, double to_s, double resolution_j) const {
  if (points_.empty() || to_s <= from_s) return {0, 0, std::max(0.0, to_s - from_s), 0};
  const Point from = at(from_s);
  const Point to = at(to_s);
  Amount amount;
  amount.joules = to.joules - from.joules;
  amount.covered_s = std::min(to.covered_s - from.covered_s, to_s - from_s);
  if (amount.covered_s < kLeastCoveredS) amount.covered_s = 0;
  amount.gap_s = to_s - from_s - amount.covered_s;
  if (amount.gap_s < kLeastGapS) amount.gap_s = 0;
  amount.uncertainty_j = 2 * resolution_j + error_j(from_s, to_s);
  return amount;
}

}  // namespace diapause::energy
