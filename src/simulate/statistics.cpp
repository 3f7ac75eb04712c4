#include "simulate/statistics.hpp"

#include <cmath>

namespace diapause::simulate {

double student_t_95(std::size_t degrees_of_freedom) {
  constexpr double kFew[] = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706,
                             2.4469,  2.3646, 2.3060, 2.2622, 2.2281};
  if (degrees_of_freedom <= 10) return kFew[degrees_of_freedom - 1];
  // The expansion around the normal quantile z (Abramowitz and Stegun, 26.7.5) is off by less than
  // 1e-4 from here on.
  constexpr double z = 1.959963984540054;
  const auto n = static_cast<double>(degrees_of_freedom);
  const double first = (std::pow(z, 3) + z) / 4;
  const double second = (5 * std::pow(z, 5) + 16 * std::pow(z, 3) + 3 * z) / 96;
  return z + first / n + second / (n * n);
}

Estimate estimate(const std::vector<double>& values) {
  Estimate result;
  result.count = values.size();
  if (values.empty()) return result;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) result.mean += value / count;
  if (values.size() < 2) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.half_width = student_t_95(values.size() - 1) * std::sqrt(squares / (count - 1) / count);
  return result;
}

}  // namespace diapause::simulate
