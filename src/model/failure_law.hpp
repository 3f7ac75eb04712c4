// How long things live: the laws of times between failures, by their cumulative hazard H(t) = -ln P(alive at t).
//
// With the cumulative hazard, the first failure among n new things comes at H^-1(E / n) for an exponentially
// distributed E, the next one among the n - 1 that are left at H^-1(E / n + E' / (n - 1)), and so on: a simulator needs
// no memory for things that never fail.
#pragma once

namespace diapause::model {

enum class LawKind { exponential, weibull, lognormal };

// `mean_s` is the mean time to failure of one thing, above 0. `shape`: Weibull's k, which is 1 for exponential times
// and below it where things fail the less the older they are; of log-normal times, the standard deviation of the
// logarithm.
struct FailureLaw {
  LawKind kind = LawKind::exponential;
  double mean_s = 0;
  double shape = 1;

  double cumulative_hazard(double age_s) const;
  // The age at which the cumulative hazard is `hazard` >= 0; infinite for infinite.
  double age_at(double hazard) const;
};

// The z with P(Z > z) = e^-hazard for a normally distributed Z: to full precision also far out in either tail.
double normal_quantile_at(double hazard);

}  // namespace diapause::model
