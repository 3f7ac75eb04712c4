#include "energy/fit.hpp"

#include <gmock/gmock.h>

#include <cmath>

namespace diapause::energy {
namespace {

TEST(Fit, FindsTheCoefficientsOfALine) {
  const std::vector<std::vector<double>> rows = {{1, 0}, {1, 0.5}, {1, 1}};
  const std::vector<double> watts = {40, 90, 140};
  const auto fit = fit_linear(rows, watts);
  ASSERT_TRUE(fit.has_value());
  EXPECT_NEAR(fit->coefficients[0], 40, 1e-9);
  EXPECT_NEAR(fit->coefficients[1], 100, 1e-9);
  EXPECT_NEAR(fit->rms, 0, 1e-9);
}

TEST(Fit, GivesNoPowerBack) {
  const std::vector<std::vector<double>> rows = {{1, 0}, {1, 0.5}, {1, 1}};
  const std::vector<double> watts = {52, 50, 48};
  const auto fit = fit_linear(rows, watts);
  ASSERT_TRUE(fit.has_value());
  EXPECT_NEAR(fit->coefficients[0], 50, 1e-9);
  EXPECT_EQ(fit->coefficients[1], 0);
}

TEST(Fit, SaysSoWhenRowsCannotTellCoefficientsApart) {
  const std::vector<std::vector<double>> rows = {{1, 1}, {1, 1}};
  const std::vector<double> watts = {50, 50};
  EXPECT_FALSE(fit_linear(rows, watts).has_value());
}

// The published fit for lossy compression on Broadwell is 0.0064 f^5.315 + 0.7429.
TEST(Fit, FindsAPublishedCurveAgain) {
  std::vector<double> ghz, power;
  for (double f = 0.8; f <= 2.001; f += 0.05) {
    ghz.push_back(f);
    power.push_back(0.0064 * std::pow(f, 5.315) + 0.7429);
  }
  const auto fit = fit_power_law(ghz, power);
  ASSERT_TRUE(fit.has_value());
  EXPECT_NEAR(fit->b, 5.315, 0.01);
  EXPECT_NEAR(fit->a, 0.0064, 1e-4);
  EXPECT_NEAR(fit->c, 0.7429, 1e-3);
}

TEST(Fit, FindsASteepCurveToo) {
  std::vector<double> ghz, power;
  for (double f = 0.8; f <= 2.201; f += 0.05) {
    ghz.push_back(f);
    power.push_back(2.235e-9 * std::pow(f, 23.31) + 0.7941);
  }
  const auto fit = fit_power_law(ghz, power);
  ASSERT_TRUE(fit.has_value());
  EXPECT_NEAR(fit->b, 23.31, 0.02);
}

TEST(Fit, NeedsThreeClocksForACurve) {
  const std::vector<double> ghz = {1, 1, 2}, power = {5, 5, 9};
  EXPECT_FALSE(fit_power_law(ghz, power).has_value());
}

}  // namespace
}  // namespace diapause::energy
