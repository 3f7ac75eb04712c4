// The laws of times between failures, given by their cumulative hazard H(t) = -ln P(alive at t).
//
// With the cumulative hazard, the first failure among n new units comes at H^-1(E / n) for an
// exponentially distributed E, the next one among the n - 1 remaining units at H^-1(E / n + E' / (n
// - 1)), and so on. A simulator therefore needs no memory for units that never fail.
#pragma once

namespace diapause::model {

enum class LawKind { exponential, weibull, lognormal };

// `mean_s` is the mean time to failure of one unit, above 0. `shape` is Weibull's k, which is 1 for
// exponential times and below 1 if units fail the less the older they are; for log-normal times it
// is the standard deviation of the logarithm.
struct FailureLaw {
  LawKind kind = LawKind::exponential;
  double mean_s = 0;
  double shape = 1;

  double cumulative_hazard(double age_s) const;
  // Returns the age at which the cumulative hazard is `hazard` >= 0; infinity for an infinite
  // hazard.
  double age_at(double hazard) const;
};

// Returns the z with P(Z > z) = e^-hazard for a normally distributed Z, with full precision also
// far out in either tail.
double normal_quantile_at(double hazard);

}  // namespace diapause::model
