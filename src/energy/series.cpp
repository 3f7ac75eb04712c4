#include "energy/series.hpp"

#include <algorithm>
#include <cmath>

namespace diapause::energy {
namespace {

// Sums of many short stretches differ in the last bit, and no source is as exact as this.
constexpr double kLeastGapS = 1e-6;
constexpr double kLeastCoveredS = 1e-9;
constexpr double kHeldUpdates = 1.5;
// Where the highest power of a source is not known, it is taken to be so many times its mean,
// unless more was seen between two samples.
constexpr double kMostOverMean = 2.5;

auto first_not_before(const std::vector<Point>& points, double time_s) {
  return std::lower_bound(points.begin(), points.end(), time_s,
                          [](const Point& point, double time) { return point.time_s < time; });
}

}  // namespace

void Series::add(const Point& point) {
  if (!points_.empty() && point.stood_still_s > kStillUpdates * source_.update_s) {
    still_ = point;
    return;
  }
  still_.reset();
  if (!points_.empty()) {
    // A source that shows joules at once may have collected them for as long as it lags.
    const double seconds = point.time_s - points_.back().time_s + source_.lag_s;
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
  const Point& first = points_.front();
  const Point& last = still_ ? *still_ : points_.back();
  if (time_s <= first.time_s) return {time_s, first.joules, first.covered_s};
  if (first.time_s == last.time_s) return {time_s, last.joules, last.covered_s};
  const bool is_later = time_s > points_.back().time_s;
  const auto found = is_later ? points_.end() - 1 : first_not_before(points_, time_s);
  const Point& after = is_later ? last : *found;
  const Point& before = is_later && still_ ? points_.back() : *(found - 1);
  const double until_s = std::min(time_s, last.time_s + kHeldUpdates * source_.update_s);
  const double share = (until_s - before.time_s) / (after.time_s - before.time_s);
  return {time_s, std::lerp(before.joules, after.joules, share),
          std::lerp(before.covered_s, after.covered_s, share)};
}

double Series::peak_w() const {
  if (source_.peak_w > 0) return std::max(source_.peak_w, highest_w_);
  const double covered_s = points_.back().covered_s - points_.front().covered_s;
  const double mean_w =
      covered_s > 0 ? (points_.back().joules - points_.front().joules) / covered_s : 0;
  return std::max(kMostOverMean * mean_w, highest_w_);
}

// A reading shows what was used until some moment of the last lag_s. So nothing that a reading
// shows was used later than the reading, and everything that was used before lag_s is in it. From
// one reading to another moment the source has used something between nothing and the most that it
// can. A reading after a gap does not show what was used before or in the gap.
Series::Band Series::band(double time_s) const {
  const Point& last = still_ ? *still_ : points_.back();
  const double held_s =
      std::clamp(time_s, points_.front().time_s, last.time_s + kHeldUpdates * source_.update_s);
  const double watts = peak_w();
  const auto after = first_not_before(points_, held_s);
  const auto before = after != points_.end() && after->time_s == held_s
                          ? after
                          : std::max(after, points_.begin() + 1) - 1;
  Band band{before->joules, before->joules + watts * (held_s - before->time_s + source_.lag_s)};
  const auto shows_all_since_before = [&](const Point& point) {
    const double seconds = point.time_s - before->time_s;
    return point.covered_s - before->covered_s > seconds - kLeastGapS;
  };
  if (after != points_.end()) {
    band.least_j = std::max(band.least_j, after->joules - watts * (after->time_s - held_s));
  }
  if (after != points_.end() && shows_all_since_before(*after)) {
    const double hidden_s = std::max(0.0, held_s - after->time_s + source_.lag_s);
    band.most_j = std::min(band.most_j, after->joules + watts * hidden_s);
  }
  const auto later = first_not_before(points_, held_s + source_.lag_s);
  if (later != points_.end() && shows_all_since_before(*later))
    band.most_j = std::min(band.most_j, later->joules);
  const double told_j = at(held_s).joules;
  return {std::min(band.least_j, told_j), std::max(band.most_j, told_j)};
}

Amount add_up(std::span<const Amount> parts) {
  if (parts.empty()) return {};
  Amount sum;
  sum.covered_s = parts.front().covered_s;
  const double seconds = parts.front().covered_s + parts.front().gap_s;
  double longest_s = 0;
  double watts = 0;
  for (const Amount& part : parts) {
    sum.joules += part.joules;
    sum.off.sampling_j += part.off.sampling_j;
    sum.off.sensor_j += part.off.sensor_j;
    sum.off.is_bounded = sum.off.is_bounded && part.off.is_bounded;
    sum.begin_off_j += part.begin_off_j;
    sum.end_off_j += part.end_off_j;
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

double Series::off_in(const Band& band, double told_j) const {
  return std::max(band.most_j - told_j, told_j - band.least_j) + source_.resolution_j;
}

double Series::off_at(double time_s) const {
  return points_.empty() ? 0 : off_in(band(time_s), at(time_s).joules);
}

Amount Series::between(double from_s, double to_s) const {
  Amount amount;
  amount.gap_s = std::max(0.0, to_s - from_s);
  if (points_.empty() || to_s <= from_s) return amount;
  const Point from = at(from_s);
  const Point to = at(to_s);
  amount.joules = to.joules - from.joules;
  amount.covered_s = std::min(to.covered_s - from.covered_s, to_s - from_s);
  if (amount.covered_s < kLeastCoveredS) amount.covered_s = 0;
  amount.gap_s = to_s - from_s - amount.covered_s;
  if (amount.gap_s < kLeastGapS) amount.gap_s = 0;

  const Band first = band(from_s);
  const Band last = band(to_s);
  const double watts = peak_w();
  const double most_j =
      std::min(last.most_j - first.least_j, std::max(amount.joules, watts * (to_s - from_s)));
  const double least_j = std::max(last.least_j - first.most_j, 0.0);
  amount.off.sampling_j =
      std::max({0.0, most_j - amount.joules, amount.joules - least_j}) + 2 * source_.resolution_j;
  amount.begin_off_j = off_in(first, from.joules);
  amount.end_off_j = off_in(last, to.joules);
  amount.off.is_bounded = source_.accuracy.share.has_value();
  amount.off.sensor_j = source_.accuracy.share.value_or(0) * std::abs(amount.joules);
  return amount;
}

}  // namespace diapause::energy
