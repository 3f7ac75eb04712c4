#include "energy/charge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace diapause::energy {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;

// A node that uses `idle` watts, and from 10 s to 20 s so many more; the second quantity is half of it.
class Node {
 public:
  explicit Node(double more_w) : more_w_(more_w) {}
  std::vector<Amount> operator()(double from_s, double to_s) const {
    const double inside_s = std::max(0.0, std::min(to_s, 20.0) - std::max(from_s, 10.0));
    Amount amount;
    amount.joules = 100 * (to_s - from_s) + more_w_ * inside_s;
    amount.uncertainty_j = 1;
    amount.covered_s = to_s - from_s;
    Amount half = amount;
    half.joules /= 2;
    return {half, amount};
  }

 private:
  double more_w_;
};

double total(const Charge& charge) { return charge.joules.back(); }

TEST(Charge, APhaseThatHoldsTheProgramUpHasAllThatIsUsed) {
  Charger charger;
  const std::vector<Span> spans{{10, 12, Beside::nothing}};
  const Charges charges = charger.charge(spans, 0, 30, Node(50));
  EXPECT_DOUBLE_EQ(total(charges.spans[0]), 300);
  EXPECT_DOUBLE_EQ(charges.spans[0].joules[0], 150);
  EXPECT_DOUBLE_EQ(total(charges.program), 3500 - 300);
}

// The example of docs/energy-account.md.
TEST(Charge, APhaseBesideTheProgramHasWhatIsMoreThanTheProgramUsesAlone) {
  Charger charger;
  const std::vector<Span> spans{{10, 20, Beside::program}};
  const Charges charges = charger.charge(spans, 0, 30, Node(50));
  EXPECT_DOUBLE_EQ(total(charges.spans[0]), 500);
  EXPECT_DOUBLE_EQ(total(charges.program), 3000);
}

TEST(Charge, APhaseThatUsesNothingMoreCostsNothing) {
  Charger charger;
  const std::vector<Span> spans{{10, 20, Beside::program}};
  EXPECT_DOUBLE_EQ(total(charger.charge(spans, 0, 30, Node(-20)).spans[0]), 0);
}

TEST(Charge, WhileTheProgramWaitsThePhasesBehindItHaveAll) {
  Charger charger;
  const std::vector<Span> spans{{10, 18, Beside::program}, {12, 20, Beside::waiting}};
  const Charges charges = charger.charge(spans, 0, 30, Node(50));
  EXPECT_DOUBLE_EQ(total(charges.spans[0]), 2 * 50 + 6 * 150);
  EXPECT_DOUBLE_EQ(total(charges.spans[1]), 2 * 150);
}

TEST(Charge, PhasesThatTakeTurnsDivideTheirTimeByTheirShares) {
  Charger charger;
  const std::vector<Span> spans{{10, 20, Beside::nothing, 0.8}, {10, 20, Beside::nothing, 0.2}};
  const Charges charges = charger.charge(spans, 0, 30, Node(50));
  EXPECT_DOUBLE_EQ(total(charges.spans[0]), 1200);
  EXPECT_DOUBLE_EQ(total(charges.spans[1]), 300);
  EXPECT_DOUBLE_EQ(charges.spans[0].uncertainty_j.back(), 0.8);
}

TEST(Charge, PhasesThatTakeTurnsAreTogetherAsMuchAsAnotherOne) {
  Charger charger;
  const std::vector<Span> spans{{10, 20, Beside::nothing, 0.8}, {10, 20, Beside::nothing, 0.2}, {10, 20}};
  const Charges charges = charger.charge(spans, 0, 30, Node(50));
  EXPECT_DOUBLE_EQ(total(charges.spans[0]), 600);
  EXPECT_DOUBLE_EQ(total(charges.spans[2]), 750);
}

TEST(Charge, WhatTheProgramUsesAloneIsRememberedFromBefore) {
  Charger charger;
  (void)charger.charge({}, 0, 10, Node(50));
  const std::vector<Span> spans{{10, 20, Beside::program}};
  EXPECT_DOUBLE_EQ(total(charger.charge(spans, 10, 20, Node(50)).spans[0]), 500);
}

TEST(Charge, BeforeTheProgramRanAloneNobodyKnows) {
  Charger charger;
  const std::vector<Span> spans{{10, 20, Beside::program}};
  const Charges charges = charger.charge(spans, 10, 20, Node(50));
  EXPECT_THAT(charges.spans[0].is_known, Each(false));
  EXPECT_DOUBLE_EQ(total(charges.program), 1500);
}

TEST(Charge, APhaseToldOfAfterItsTimeWasSettledIsPaidBackToTheProgram) {
  Charger charger;
  const Charges before = charger.charge({}, 0, 10, Node(0));
  EXPECT_DOUBLE_EQ(total(before.program), 1000);
  const std::vector<Span> spans{{2, 3, Beside::nothing}, {9, 12, Beside::nothing}};
  const Charges charges = charger.charge(spans, 10, 20, Node(0));
  EXPECT_DOUBLE_EQ(total(charges.spans[0]), 100);
  EXPECT_DOUBLE_EQ(total(charges.spans[1]), 300);
  EXPECT_DOUBLE_EQ(total(charges.whole), 1000);
  EXPECT_DOUBLE_EQ(total(charges.program), 1000 - 400);
}

TEST(Charge, WhatIsToldOfTooLateDoesNotChangeWhatTheProgramUsesAlone) {
  Charger charger;
  (void)charger.charge({}, 0, 10, Node(50));
  const std::vector<Span> spans{{5, 6, Beside::nothing}, {10, 20, Beside::program}};
  EXPECT_DOUBLE_EQ(total(charger.charge(spans, 10, 20, Node(50)).spans[1]), 500);
}

TEST(Charge, OfAPhaseThatGoesOnOnlyThePartUntilNowCounts) {
  Charger charger;
  const std::vector<Span> spans{{20, 50, Beside::nothing}};
  EXPECT_DOUBLE_EQ(total(charger.charge(spans, 0, 30, Node(0)).spans[0]), 1000);
}

// Whose first reading was at 10 s; the second quantity knows nothing at all.
std::vector<Amount> begun_at_10(double from_s, double to_s) {
  Amount amount;
  amount.covered_s = std::max(0.0, to_s - std::max(from_s, 10.0));
  amount.joules = 100 * amount.covered_s;
  amount.uncertainty_j = 1;
  amount.gap_s = to_s - from_s - amount.covered_s;
  return {amount, {0, 0, to_s - from_s, 0}, amount};
}

TEST(Charge, APhaseBeforeTheFirstReadingIsUnknownAndNotFree) {
  Charger charger;
  const std::vector<Span> spans{{2, 4, Beside::nothing}, {8, 12, Beside::nothing}};
  const Charges charges = charger.charge(spans, 0, 20, begun_at_10);
  EXPECT_THAT(charges.spans[0].is_known, ElementsAre(false, false, false));
  EXPECT_THAT(charges.spans[1].is_known, ElementsAre(true, false, true));
  EXPECT_DOUBLE_EQ(total(charges.spans[1]), 200);
  EXPECT_THAT(charges.whole.is_known, ElementsAre(true, false, true));
  EXPECT_DOUBLE_EQ(charges.gap_s, 10);
}

TEST(Charge, APhaseOfNoTimeIsKnownToUseNothing) {
  Charger charger;
  const std::vector<Span> spans{{2, 2, Beside::nothing}};
  EXPECT_THAT(charger.charge(spans, 0, 20, begun_at_10).spans[0].is_known, Each(true));
}

// While the program waits, a phase behind it has all; while it computes, nobody knows.
TEST(Charge, TheProgramHasWhatIsKnownOfAnUnknownPhase) {
  Charger charger;
  const std::vector<Span> spans{{10, 20, Beside::program}, {10, 12, Beside::waiting}};
  const Charges charges = charger.charge(spans, 10, 20, Node(50));
  EXPECT_FALSE(charges.spans[0].is_known.back());
  EXPECT_DOUBLE_EQ(total(charges.spans[0]), 0);
  EXPECT_DOUBLE_EQ(total(charges.program), 1500);
}

TEST(Charge, NothingIsUsedInNoTime) {
  Charger charger;
  EXPECT_TRUE(charger.charge({}, 10, 10, Node(0)).spans.empty());
}

// Whatever overlaps whatever.
TEST(Charge, ThePartsAddUpToTheWhole) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> time(-5, 35);
  std::uniform_real_distribution<double> share(0.01, 1);
  Charger charger;
  for (int round = 0; round < 200; ++round) {
    std::vector<Span> spans;
    for (std::size_t i = random() % 8; i > 0; --i) {
      const double a = time(random);
      const double b = time(random);
      spans.push_back({std::min(a, b), std::max(a, b), static_cast<Beside>(random() % 3), share(random)});
    }
    const Charges charges = charger.charge(spans, 0, 30, Node(50));
    double sum = total(charges.program);
    for (const Charge& charge : charges.spans) {
      EXPECT_GE(total(charge), 0);
      sum += total(charge);
    }
    EXPECT_THAT(sum, DoubleNear(3500, 1e-6));
    EXPECT_THAT(total(charges.whole), DoubleNear(3500, 1e-6));
  }
}

}  // namespace
}  // namespace diapause::energy
