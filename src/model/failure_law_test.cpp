#include "model/failure_law.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace diapause::model {
namespace {

TEST(FailureLaw, AgesAndHazardsAreInversesOfEachOther) {
  for (const FailureLaw& law :
       {FailureLaw{LawKind::exponential, 1000, 1}, FailureLaw{LawKind::weibull, 1000, 0.7},
        FailureLaw{LawKind::lognormal, 1000, 1.8}}) {
    for (const double hazard : {1e-12, 1e-6, 0.1, 1.0, 30.0, 600.0}) {
      EXPECT_NEAR(law.cumulative_hazard(law.age_at(hazard)) / hazard, 1, 1e-8) << hazard;
    }
  }
}

TEST(FailureLaw, TheMeanIsWhatWasAskedFor) {
  for (const FailureLaw& law :
       {FailureLaw{LawKind::exponential, 1000, 1}, FailureLaw{LawKind::weibull, 1000, 0.7},
        FailureLaw{LawKind::weibull, 1000, 2}, FailureLaw{LawKind::lognormal, 1000, 1.2}}) {
    // The mean is the integral of P(alive) over age. Here it is the integral of the age over
    // P(alive), computed by the midpoint rule.
    double sum_s = 0;
    constexpr int kParts = 400000;
    for (int i = 0; i < kParts; ++i) sum_s += law.age_at(-std::log((i + 0.5) / kParts));
    EXPECT_NEAR(sum_s / kParts / 1000, 1, 0.003);
  }
}

TEST(FailureLaw, ShapeOneIsExponential) {
  const FailureLaw weibull{LawKind::weibull, 500, 1};
  EXPECT_NEAR(weibull.age_at(0.3), 150, 1e-9);
}

TEST(FailureLaw, NormalQuantilesAreThoseOfTables) {
  EXPECT_NEAR(normal_quantile_at(std::log(2.0)), 0, 1e-10);
  EXPECT_NEAR(normal_quantile_at(-std::log(0.025)), 1.959963984540054, 1e-9);
  EXPECT_NEAR(normal_quantile_at(-std::log1p(-0.025)), -1.959963984540054, 1e-9);
  EXPECT_NEAR(normal_quantile_at(-std::log(1e-15)), 7.941345326170997, 1e-8);
}

}  // namespace
}  // namespace diapause::model
