#include "energy/node_curve.hpp"

#include <algorithm>
#include <cmath>

namespace diapause::energy {
namespace {

// Power supplies have an efficiency of 85 to 95 %, and fans follow the load. That gives the slope
// before anything is measured.
constexpr double kUsualPerPart = 1.15;
constexpr double kUsualPerPartOff = 0.15;  // standard deviation
constexpr double kSpread = 2;              // so many standard deviations are taken for a bound
constexpr double kLeastScatterW = 0.1;     // no meter of a node is better

}  // namespace

void PartsFit::add(const Window& window) {
  windows_.push_back(window);
  if (windows_.size() > kMostWindows) windows_.pop_front();
  if (is_known()) fit();
}

double PartsFit::scatter_w() const {
  double squares = 0;
  for (const Window& window : windows_) {
    for (const Powers& quarter : window.quarters) {
      const double off = quarter.node_w - watts(quarter.parts_w);
      squares += off * off;
    }
  }
  return std::max(kLeastScatterW,
                  std::sqrt(squares / static_cast<double>(windows_.size() * kQuarters - 2)));
}

// This is a least-squares fit in which the slope that is known beforehand counts like one more
// measurement. Its weight depends on the scatter about the line, which depends on the slope a
// little; hence there are three passes.
void PartsFit::fit() {
  const auto count = static_cast<double>(windows_.size());
  double node_w = 0;
  mean_parts_w_ = 0;
  for (const Window& window : windows_) {
    mean_parts_w_ += window.whole.parts_w / count;
    node_w += window.whole.node_w / count;
  }
  double squares = 0, products = 0;
  for (const Window& window : windows_) {
    squares += (window.whole.parts_w - mean_parts_w_) * (window.whole.parts_w - mean_parts_w_);
    products += (window.whole.parts_w - mean_parts_w_) * (window.whole.node_w - node_w);
  }
  per_part_ = kUsualPerPart;
  for (int pass = 0; pass < 3; ++pass) {
    rest_w_ = node_w - per_part_ * mean_parts_w_;
    scatter_w_ = scatter_w();
    const double weight = scatter_w_ * scatter_w_ / (kUsualPerPartOff * kUsualPerPartOff);
    per_part_ = (products + weight * kUsualPerPart) / (squares + weight);
    per_part_off_ = scatter_w_ / std::sqrt(squares + weight);
  }
  rest_w_ = node_w - per_part_ * mean_parts_w_;
}

// Power that scatters from quarter to quarter scatters more in shorter times. Few windows tell
// their scatter badly.
double PartsFit::off_w(double parts_w, double seconds, double quarter_s) const {
  const double few = 1 + 4 / (static_cast<double>(windows_.size()) - 2);
  const double shorter = std::sqrt(std::max(1.0, quarter_s / seconds));
  return kSpread * few * (scatter_w_ * shorter + per_part_off_ * std::abs(parts_w - mean_parts_w_));
}

std::optional<PartsFit::Powers> NodeCurve::powers(const Series& node, const Parts& parts,
                                                  double from_s, double to_s) {
  const Amount whole = node.between(from_s, to_s);
  const Amount of_parts = parts(from_s, to_s);
  if (whole.has_gap() || of_parts.has_gap()) return std::nullopt;
  return PartsFit::Powers{of_parts.joules / (to_s - from_s), whole.joules / (to_s - from_s)};
}

void NodeCurve::learn(const Series& node, const Parts& parts) {
  if (node.empty()) return;
  const auto place_s = [&](double window) { return node.first().time_s + window_s_ * window; };
  for (; node.last().time_s >= place_s(static_cast<double>(learnt_ + 1)); ++learnt_) {
    const auto first = static_cast<double>(learnt_);
    const auto whole = powers(node, parts, place_s(first), place_s(first + 1));
    if (!whole) continue;
    PartsFit::Window window{*whole, {}};
    for (std::size_t i = 0; i < PartsFit::kQuarters; ++i) {
      const auto share = [](std::size_t quarter) {
        return static_cast<double>(quarter) / PartsFit::kQuarters;
      };
      window.quarters[i] =
          powers(node, parts, place_s(first + share(i)), place_s(first + share(i + 1)))
              .value_or(*whole);
    }
    fit_.add(window);
  }
}

// Returns the joules since the first reading. In a complete window, the difference to the line is
// spread over the window evenly. The result is empty where one of the meters has a gap.
std::optional<double> NodeCurve::joules_at(const Series& node, const Parts& parts,
                                           double time_s) const {
  const double first_s = node.first().time_s;
  if (time_s <= first_s) return node.at(time_s).joules;
  const double window =
      std::min(std::floor((time_s - first_s) / window_s_), static_cast<double>(learnt_));
  const bool is_complete = window < static_cast<double>(learnt_);
  const double began_s = first_s + window * window_s_;
  const double end_s = is_complete ? began_s + window_s_ : time_s;
  const Amount whole = node.between(began_s, end_s);
  const auto line_j = [&](double until_s) -> std::optional<double> {
    if (!(until_s > began_s)) return 0;
    const Amount used = parts(began_s, until_s);
    if (used.has_gap()) return std::nullopt;
    return fit_.rest_w() * (until_s - began_s) + fit_.per_part() * used.joules;
  };
  const auto used_j = line_j(time_s);
  const auto window_j = line_j(end_s);
  if (!used_j || !window_j || whole.has_gap()) return std::nullopt;
  double joules = node.at(began_s).joules + *used_j;
  if (is_complete) joules += (whole.joules - *window_j) * (time_s - began_s) / window_s_;
  return joules;
}

Amount NodeCurve::between(const Series& node, const Parts& parts, double from_s,
                          double to_s) const {
  Amount amount = node.between(from_s, to_s);
  if (!fit_.is_known() || amount.has_gap() || !(to_s > from_s)) return amount;
  const Amount of_parts = parts(from_s, to_s);
  const auto begin_j = joules_at(node, parts, from_s);
  const auto end_j = joules_at(node, parts, to_s);
  if (!begin_j || !end_j || of_parts.has_gap()) return amount;
  const double joules = *end_j - *begin_j;
  const double slow_off_j = amount.off.sampling_j + std::abs(joules - amount.joules);
  const double seconds = to_s - from_s;
  const double line_off_j =
      fit_.off_w(of_parts.joules / seconds, seconds, window_s_ / PartsFit::kQuarters) * seconds +
      std::abs(fit_.per_part()) * of_parts.off.sampling_j;
  const double share = amount.joules > 0 ? amount.off.sensor_j / amount.joules : 0;
  amount.joules = joules;
  amount.off.sampling_j = std::min(slow_off_j, line_off_j);
  amount.off.sensor_j = share * std::abs(joules);
  const Series::Band first = node.band(from_s);
  const Series::Band last = node.band(to_s);
  amount.begin_off_j = std::max(first.most_j - *begin_j, *begin_j - first.least_j);
  amount.end_off_j = std::max(last.most_j - *end_j, *end_j - last.least_j);
  return amount;
}

}  // namespace diapause::energy
