#include "model/failure_law.hpp"

#include <cmath>
#include <limits>

namespace diapause::model {
namespace {

constexpr double kSqrtHalf = 0.70710678118654752440;

// Returns -ln P(Z > z) for a normally distributed Z.
double normal_hazard(double z) {
  if (z < 30) {
    const double below = 0.5 * std::erfc(-z * kSqrtHalf);
    return z < 0 ? -std::log1p(-below) : -std::log(0.5 * std::erfc(z * kSqrtHalf));
  }
  // erfc underflows further out; the asymptotic series of the tail does not.
  constexpr double kHalfLogTwoPi = 0.91893853320467274178;
  return z * z / 2 + std::log(z) + kHalfLogTwoPi + 1 / (z * z);
}

// Returns Weibull's scale: mean / Gamma(1 + 1/k).
double weibull_scale(const FailureLaw& law) { return law.mean_s / std::tgamma(1 + 1 / law.shape); }

// Returns the mean of the logarithm.
double log_mean(const FailureLaw& law) { return std::log(law.mean_s) - law.shape * law.shape / 2; }

}  // namespace

double normal_quantile_at(double hazard) {
  if (hazard <= 0) return -std::numeric_limits<double>::infinity();
  // The hazard increases with z. Both ends of the interval are found by doubling.
  double low = -1;
  double high = 1;
  while (normal_hazard(low) > hazard && low > -39) low *= 2;
  while (normal_hazard(high) < hazard && high < 1e12) high *= 2;
  for (int step = 0; step < 200 && high - low > 1e-13 * (1 + std::abs(low)); ++step) {
    const double middle = (low + high) / 2;
    (normal_hazard(middle) < hazard ? low : high) = middle;
  }
  return (low + high) / 2;
}

double FailureLaw::cumulative_hazard(double age_s) const {
  if (age_s <= 0) return 0;
  switch (kind) {
    case LawKind::exponential:
      return age_s / mean_s;
    case LawKind::weibull:
      return std::pow(age_s / weibull_scale(*this), shape);
    case LawKind::lognormal:
      return normal_hazard((std::log(age_s) - log_mean(*this)) / shape);
  }
  return 0;
}

double FailureLaw::age_at(double hazard) const {
  if (std::isinf(hazard)) return hazard;
  switch (kind) {
    case LawKind::exponential:
      return hazard * mean_s;
    case LawKind::weibull:
      return weibull_scale(*this) * std::pow(hazard, 1 / shape);
    case LawKind::lognormal:
      return std::exp(log_mean(*this) + shape * normal_quantile_at(hazard));
  }
  return 0;
}

}  // namespace diapause::model
