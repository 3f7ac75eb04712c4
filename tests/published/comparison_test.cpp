#include "published/comparison.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace diapause::published {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

std::filesystem::path root() { return DIAPAUSE_TEST_SOURCES; }
std::vector<Case> cases() { return read_cases(root() / "python/diapause/study/published"); }

std::vector<double> energies_of_the_rule(double rest) {
  std::vector<double> energies;
  for (const Case& which : cases()) {
    energies.push_back(policy::energy_ratio(node_of(which, rest), published_phi(), which.rule));
  }
  return energies;
}

constexpr double kPrinted = 0.0006;  // figures with three places

TEST(PublishedRule, SavesEnergyOfTheProcessor) {
  EXPECT_THAT(published_phi(), DoubleNear(0.526, kPrinted));
  EXPECT_THAT(energies_of_the_rule(0),
              ElementsAre(DoubleNear(0.936, kPrinted), DoubleNear(0.857, kPrinted),
                          DoubleNear(0.964, kPrinted), DoubleNear(0.958, kPrinted)));
}

TEST(PublishedRule, LosesEnergyInThreeOfFourCasesWhereTheRestOfTheNodeDrawsAsMuch) {
  EXPECT_THAT(energies_of_the_rule(1),
              ElementsAre(DoubleNear(1.005, kPrinted), DoubleNear(0.966, kPrinted),
                          DoubleNear(1.028, kPrinted), DoubleNear(1.025, kPrinted)));
}

// A sixteenth of the phases runs at the base clock, to compare, where slowing saves 14 % at most.
constexpr double kComparisons = 0.01;

TEST(MeasuredPolicy, LosesNextToNothingOnAnyOfTheseNodes) {
  for (const Case& which : cases()) {
    for (const double rest : {0.0, 0.5, 1.0, 2.0, 4.0}) {
      const double rule = policy::energy_ratio(node_of(which, rest), published_phi(), which.rule);
      const Outcome outcome = run_measured(which, rest, 1000);
      EXPECT_LE(outcome.energy, 1.005) << which.phase << " " << which.processor << " " << rest;
      EXPECT_LE(outcome.energy, rule + kComparisons)
          << which.phase << " " << which.processor << " " << rest;
    }
  }
}

TEST(Documentation, HasTheTablesThatTheCodeComputes) {
  std::ifstream file(root() / "docs/throttling.md");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_THAT(text, testing::HasSubstr(tables(cases())))
      << "put what throttle_tables prints between the markers in docs/throttling.md";
}

}  // namespace
}  // namespace diapause::published
