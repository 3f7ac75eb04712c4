#include "energy/series.hpp"

#include <algorithm>
#include <cmath>

namespace diapause::energy {
namespace {

// Sums of many short stretches do not meet in the last bit, and nobody's source is as exact as this.
constexpr double kLeastGapS = 1e-6;
constexpr double kHeldUpdates = 1.5;

auto first_not_before(const std::vector<Point>& points, double time_s) {
  return std::lower_bound(points.begin(), points.end(), time_s,
                          [](const Point& point, double time) { return point.time_s < time; });
}

}  // namespace

void Series::add(const Point& point) {
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

// How far the energy at a time may be off: by what is used until the nearest reading, or until the source changes.
double Series::edge_error_j(double time_s) const {
  if (points_.size() < 2 || time_s <= points_.front().time_s) return 0;
  const auto after = time_s > points_.back().time_s ? points_.end() - 1 : first_not_before(points_, time_s);
  const auto before = after - 1;
  const double watts = (after->joules - before->joules) / (after->time_s - before->time_s);
  const double nearest_s = std::min(time_s - before->time_s, std::abs(after->time_s - time_s));
  return watts * std::max(nearest_s, update_s_);
}

Amount Series::between(double from_s, double to_s, double resolution_j) const {
  if (points_.empty() || to_s <= from_s) return {0, 0, std::max(0.0, to_s - from_s), 0};
  const Point from = at(from_s);
  const Point to = at(to_s);
  Amount amount;
  amount.joules = to.joules - from.joules;
  amount.covered_s = std::min(to.covered_s - from.covered_s, to_s - from_s);
  amount.gap_s = to_s - from_s - amount.covered_s;
  if (amount.gap_s < kLeastGapS) amount.gap_s = 0;
  amount.uncertainty_j = 2 * resolution_j + edge_error_j(from_s) + edge_error_j(to_s);
  return amount;
}

}  // namespace diapause::energy
