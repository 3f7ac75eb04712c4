// Least squares, as far as profiles need them. Pure.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace diapause::energy {

// The coefficients x, none below 0, for which the sum of (row · x - value)^2 is least: power is not
// given back, so that a coefficient that would be below 0 is taken to be 0 and the others are
// fitted anew. Nothing if the rows cannot tell the coefficients apart. All rows have the same
// length, at most one for each value.
struct LinearFit {
  std::vector<double> coefficients;
  double rms = 0;  // of what is left
};
std::optional<LinearFit> fit_linear(std::span<const std::vector<double>> rows,
                                    std::span<const double> values);

// a x^b + c through points: a and c by least squares for each b from 0.5 to 30, and the b that
// leaves least. Needs three different x above 0; nothing otherwise.
struct PowerFit {
  double a = 0, b = 0, c = 0;
  double rms = 0;
};
std::optional<PowerFit> fit_power_law(std::span<const double> x, std::span<const double> y);

}  // namespace diapause::energy
