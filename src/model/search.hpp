// Finds a minimum in one dimension over the logarithm of the argument.
#pragma once

#include <algorithm>
#include <cmath>

namespace diapause::model {

// Returns the place between `low` and `high`, both above 0, of the minimum of a function with a
// single minimum there, to a relative `tolerance`. Brent, "Algorithms for Minimization without
// Derivatives" (1973), chapter 5: the vertex of a parabola through the three best places so far, or
// a golden section if that does not help.
template <class Function>
double least_place(Function function, double low, double high, double tolerance = 1e-7) {
  constexpr double kGolden = 0.3819660112501051;
  struct Point {
    double at, value;
  };
  const auto point = [&](double at) { return Point{at, function(std::exp(at))}; };
  const double least_step = tolerance / 2;
  double left = std::log(low);
  double right = std::log(high);
  Point best = point(left + kGolden * (right - left));
  Point second = best;
  Point third = best;
  double step = 0;
  double step_before = 0;
  while (true) {
    const double middle = (left + right) / 2;
    if (std::abs(best.at - middle) <= 2 * least_step - (right - left) / 2) return std::exp(best.at);
    const double r = (best.at - second.at) * (best.value - third.value);
    const double q = (best.at - third.at) * (best.value - second.value);
    double over = (best.at - third.at) * q - (best.at - second.at) * r;
    double under = 2 * (q - r);
    if (under > 0) over = -over;
    under = std::abs(under);
    // NaN where values are infinite: every comparison is then false.
    const bool is_inside = over > under * (left - best.at) && over < under * (right - best.at);
    if (is_inside && std::abs(over) < std::abs(under * step_before / 2)) {
      step_before = step;
      step = over / under;
      const double to = best.at + step;
      const bool is_near_end = to - left < 2 * least_step || right - to < 2 * least_step;
      if (is_near_end) step = std::copysign(least_step, middle - best.at);
    } else {
      step_before = best.at < middle ? right - best.at : left - best.at;
      step = kGolden * step_before;
    }
    const Point now =
        point(best.at + (std::abs(step) >= least_step ? step : std::copysign(least_step, step)));
    if (std::isinf(now.value) && std::isinf(best.value)) {
      // If the values are equal, the shorter one is preferred.
      right = std::max(now.at, best.at);
      if (now.at < best.at) best = now;
      second = third = best;
    } else if (now.value <= best.value) {
      (now.at < best.at ? right : left) = best.at;
      third = second;
      second = best;
      best = now;
    } else {
      (now.at < best.at ? left : right) = now.at;
      if (now.value <= second.value || second.at == best.at) {
        third = second;
        second = now;
      } else if (now.value <= third.value || third.at == best.at || third.at == second.at) {
        third = now;
      }
    }
  }
}

}  // namespace diapause::model
