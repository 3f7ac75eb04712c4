// Where a function is least, by golden section over the logarithm of its argument.
#pragma once

#include <cmath>

namespace diapause::model {

// The place between `low` and `high`, both above 0, of the least value of a function with one minimum there, to
// `tolerance` of it.
template <class Function>
double least_place(Function function, double low, double high, double tolerance = 1e-7) {
  constexpr double kGolden = 0.6180339887498949;
  double left = std::log(low);
  double right = std::log(high);
  double a = right - kGolden * (right - left);
  double b = left + kGolden * (right - left);
  double at_a = function(std::exp(a));
  double at_b = function(std::exp(b));
  while (right - left > tolerance) {
    // Where both are infinite the shorter interval is taken.
    if (at_a <= at_b) {
      right = b;
      b = a;
      at_b = at_a;
      a = right - kGolden * (right - left);
      at_a = function(std::exp(a));
    } else {
      left = a;
      a = b;
      at_a = at_b;
      b = left + kGolden * (right - left);
      at_b = function(std::exp(b));
    }
  }
  return std::exp((left + right) / 2);
}

}  // namespace diapause::model
