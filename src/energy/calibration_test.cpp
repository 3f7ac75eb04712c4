#include "energy/calibration.hpp"

#include <gmock/gmock.h>

#include <cmath>

namespace diapause::energy {
namespace {

using testing::HasSubstr;

// The machine draws 40 + 100 u for its package, times the curve when busy, 10 + 0.5 J/GB for its
// memory, and 60 + 20 u for the rest.
CalibrationSample sample(double utilisation, double memory_gb_s, double ghz = 2) {
  const double curve = (0.1 * std::pow(ghz, 3) + 0.4) / 1.2;
  CalibrationSample result;
  result.activity = {utilisation, ghz, memory_gb_s, 0, 0};
  const double package = 40 + (140 * curve - 40) * utilisation;
  const double dram = 10 + 0.5 * memory_gb_s;
  result.watts = {{Domain::package, package},
                  {Domain::dram, dram},
                  {Domain::node, package + dram + 60 + 20 * utilisation}};
  return result;
}

const DomainModel& model_of(const Profile& profile, Domain domain) {
  return *std::find_if(profile.domains.begin(), profile.domains.end(),
                       [&](const DomainModel& model) { return model.domain == domain; });
}

TEST(Calibration, FindsTheMachineAgain) {
  const std::vector<CalibrationSample> samples = {sample(0, 0), sample(0.5, 0), sample(1, 0),
                                                  sample(1, 20)};
  const auto profile = fit_profile(samples, "test");
  ASSERT_TRUE(profile.has_value()) << profile.error().message;
  EXPECT_NEAR(model_of(*profile, Domain::package).idle_w.value, 40, 1e-6);
  EXPECT_NEAR(model_of(*profile, Domain::package).busy_w.value, 100, 1e-6);
  EXPECT_NEAR(model_of(*profile, Domain::dram).j_per_gb.value, 0.5, 1e-6);
  EXPECT_NEAR(model_of(*profile, Domain::other).idle_w.value, 60, 1e-6);
  EXPECT_NEAR(model_of(*profile, Domain::other).busy_w.value, 20, 1e-6);
  EXPECT_FALSE(profile->curve.has_value());
}

TEST(Calibration, TellsHowFarAProfileIsOffInWhatItWasNotFittedTo) {
  const std::vector<CalibrationSample> samples = {sample(0, 0), sample(0.5, 0), sample(1, 0),
                                                  sample(1, 20)};
  const auto profile = fit_profile(samples, "test");
  ASSERT_TRUE(profile.has_value());
  EXPECT_NEAR(hold_out_error(*profile, samples, 0, "here")->value, 0, 1e-9);

  std::vector<CalibrationSample> others = {sample(0.2, 5), sample(0.7, 10)};
  const double node_w = others[1].watts[Domain::node];
  others[1].watts[Domain::node] = node_w * 1.25;  // a quarter more than the profile says
  const auto error = hold_out_error(*profile, others, 0.1, "here");
  ASSERT_TRUE(error.has_value());
  // The counters may have told too little: the node may have drawn 1.25 * 1.1 of what it says.
  EXPECT_NEAR(error->value, 1.25 * 1.1 - 1, 1e-6);
  EXPECT_EQ(error->source,
            "greatest of 2 samples that were not fitted, 25 %, and 10 % of the counters; here");

  others[0].watts.erase(Domain::node);
  EXPECT_THAT(hold_out_error(*profile, others, 0, "here").error().message,
              HasSubstr("node was not measured"));
}

TEST(Calibration, FindsTheCurveWhereThereAreSeveralClocks) {
  std::vector<CalibrationSample> samples = {sample(0, 0), sample(0.5, 0)};
  for (const double ghz : {0.8, 1.2, 1.6, 2.0}) samples.push_back(sample(1, 0, ghz));
  const auto profile = fit_profile(samples, "test");
  ASSERT_TRUE(profile.has_value());
  ASSERT_TRUE(profile->curve.has_value());
  EXPECT_NEAR(profile->curve->b.value, 3, 0.02);
  EXPECT_NEAR(profile->curve->at(1.2) / profile->curve->at(2), (0.1 * std::pow(1.2, 3) + 0.4) / 1.2,
              1e-3);
  EXPECT_NEAR(model_of(*profile, Domain::package).busy_w.value, 100, 0.1);
}

TEST(Calibration, GivesAProfileThatCanBeRead) {
  const std::vector<CalibrationSample> samples = {sample(0, 0), sample(0.5, 0), sample(1, 20)};
  const auto profile = fit_profile(samples, "a \"test\"");
  const auto again = parse_profile(profile_toml(*profile), "again", {});
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_NEAR(model_of(*again, Domain::package).idle_w.value, 40, 1e-6);
  EXPECT_THAT(model_of(*again, Domain::package).idle_w.source, HasSubstr("fitted to 3 samples"));
}

TEST(Calibration, SaysWhichSamplesAreMissing) {
  EXPECT_THAT(fit_profile(std::vector{sample(1, 0)}, "test").error().message,
              HasSubstr("three samples"));
  EXPECT_THAT(
      fit_profile(std::vector{sample(1, 0), sample(1, 0), sample(1, 0)}, "test").error().message,
      HasSubstr("do not differ enough"));
  // Somebody else kept the machine busy, so a small difference says nothing about an idle machine.
  EXPECT_THAT(fit_profile(std::vector{sample(0.97, 0), sample(0.99, 0), sample(1, 20)}, "test")
                  .error()
                  .message,
              HasSubstr("97 to 100 %"));
}

TEST(Calibration, SamplesCanBeKeptInAFile) {
  const auto again = parse_sample(sample_line(sample(0.5, 3)));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->watts, sample(0.5, 3).watts);
  EXPECT_EQ(again->activity.memory_gb_s, 3);
  EXPECT_FALSE(parse_sample("{}").has_value());
  EXPECT_FALSE(parse_sample(R"({"watts": {"cpu": 3}})").has_value());
}

}  // namespace
}  // namespace diapause::energy
