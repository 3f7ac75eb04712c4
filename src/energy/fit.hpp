// Does least squares, as far as profiles need them. The code is pure.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace diapause::energy {

// Finds the coefficients x, none below 0, for which the sum of (row · x - value)^2 is least. Power
// is not given back, so a coefficient that would be below 0 is taken to be 0, and the others are
// fitted anew. There is no result if the rows cannot tell the coefficients apart. All rows have the
// same length, and there is at most one for each value.
struct LinearFit {
  std::vector<double> coefficients;
  double rms = 0;  // root mean square of what the fit leaves
};
std::optional<LinearFit> fit_linear(std::span<const std::vector<double>> rows,
                                    std::span<const double> values);

// Fits a x^b + c to points: a and c by least squares for each b from 0.5 to 30, and the b that
// leaves least. It needs three different x above 0, and has no result otherwise.
struct PowerFit {
  double a = 0, b = 0, c = 0;
  double rms = 0;
};
std::optional<PowerFit> fit_power_law(std::span<const double> x, std::span<const double> y);

}  // namespace diapause::energy
