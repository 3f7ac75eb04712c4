#include "model/lambert.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace diapause::model {
namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

// Returns 1 - (1 - x) e^x, the sum of x^n (n - 1) / n! from n = 2. The series avoids cancellation
// for small x.
double branch_distance(double x) {
  if (x > 0.1) return x * std::exp(x) - std::expm1(x);
  double power_over_factorial = x;
  double sum = 0;
  for (int n = 2; n < 14; ++n) {
    power_over_factorial *= x / n;
    sum += power_over_factorial * (n - 1);
  }
  return sum;
}

}  // namespace

double one_plus_lambert_w0(double y) {
  if (!(y >= 0)) return kNotANumber;
  if (y == 0) return 0;
  if (std::isinf(y)) return y;
  // Both values are to the right of the solution. From there, Newton's steps on a convex function
  // descend to it.
  double x = std::min(std::sqrt(2 * y), 1 + std::log1p(y));
  for (int step = 0; step < 60; ++step) {
    const double next = x - (branch_distance(x) - y) / (x * std::exp(x));
    if (!(next < x)) break;
    x = next;
  }
  return x;
}

double lambert_w0(double z) {
  constexpr double kE = 2.718281828459045235;
  return one_plus_lambert_w0(1 + kE * z) - 1;
}

}  // namespace diapause::model
