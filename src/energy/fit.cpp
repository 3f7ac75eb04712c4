#include "energy/fit.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace diapause::energy {
namespace {

// Solves the normal equations of the columns in `used` by elimination with the largest pivot.
std::optional<std::vector<double>> solve(std::span<const std::vector<double>> rows,
                                         std::span<const double> values,
                                         const std::vector<std::size_t>& used) {
  const std::size_t n = used.size();
  std::vector<std::vector<double>> matrix(n, std::vector<double>(n + 1, 0.0));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < n; ++k) matrix[i][k] += rows[r][used[i]] * rows[r][used[k]];
      matrix[i][n] += rows[r][used[i]] * values[r];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    const auto larger = [i](const auto& a, const auto& b) {
      return std::abs(a[i]) < std::abs(b[i]);
    };
    std::swap(matrix[i], *std::max_element(matrix.begin() + static_cast<std::ptrdiff_t>(i),
                                           matrix.end(), larger));
    constexpr double kSingular = 1e-12;
    if (std::abs(matrix[i][i]) < kSingular) return std::nullopt;
    for (std::size_t r = 0; r < n; ++r) {
      const double factor = r == i ? 0 : matrix[r][i] / matrix[i][i];
      for (std::size_t k = i; k <= n; ++k) matrix[r][k] -= factor * matrix[i][k];
    }
  }
  std::vector<double> solution(n);
  for (std::size_t i = 0; i < n; ++i) solution[i] = matrix[i][n] / matrix[i][i];
  return solution;
}

double rms_of(std::span<const std::vector<double>> rows, std::span<const double> values,
              const std::vector<double>& coefficients) {
  double sum = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    double left = -values[r];
    for (std::size_t i = 0; i < coefficients.size(); ++i) left += rows[r][i] * coefficients[i];
    sum += left * left;
  }
  return std::sqrt(sum / static_cast<double>(rows.size()));
}

std::optional<PowerFit> fit_with_exponent(std::span<const double> x, std::span<const double> y,
                                          double b) {
  std::vector<std::vector<double>> rows;
  for (const double value : x) rows.push_back({std::pow(value, b), 1});
  const auto solution = solve(rows, y, {0, 1});
  if (!solution) return std::nullopt;
  return PowerFit{(*solution)[0], b, (*solution)[1], rms_of(rows, y, *solution)};
}

}  // namespace

std::optional<LinearFit> fit_linear(std::span<const std::vector<double>> rows,
                                    std::span<const double> values) {
  if (rows.empty()) return std::nullopt;
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < rows.front().size(); ++i) used.push_back(i);
  while (!used.empty()) {
    const auto solution = solve(rows, values, used);
    if (!solution) return std::nullopt;
    const auto least = std::min_element(solution->begin(), solution->end());
    if (*least >= 0) {
      LinearFit fit;
      fit.coefficients.resize(rows.front().size());
      for (std::size_t i = 0; i < used.size(); ++i) fit.coefficients[used[i]] = (*solution)[i];
      fit.rms = rms_of(rows, values, fit.coefficients);
      return fit;
    }
    used.erase(used.begin() + (least - solution->begin()));
  }
  return std::nullopt;
}

std::optional<PowerFit> fit_power_law(std::span<const double> x, std::span<const double> y) {
  const std::set<double> different(x.begin(), x.end());
  if (different.size() < 3 || *different.begin() <= 0) return std::nullopt;
  // x is scaled to the largest x, so that x^30 is neither 0 nor infinite.
  const double scale = *different.rbegin();
  std::vector<double> scaled;
  for (const double value : x) scaled.push_back(value / scale);
  constexpr double kFrom = 0.5, kTo = 30, kStep = 0.01;
  std::optional<PowerFit> best;
  for (double b = kFrom; b <= kTo; b += kStep) {
    const auto fit = fit_with_exponent(scaled, y, b);
    if (fit && (!best || fit->rms < best->rms)) best = fit;
  }
  if (best) best->a /= std::pow(scale, best->b);
  return best;
}

}  // namespace diapause::energy
