#include "energy/charge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace diapause::energy {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;

// A node uses `idle` watts, and from 10 s to 20 s a given number more. The second quantity is half
// of it.
class Node {
 public:
  explicit Node(double more_w) : more_w_(more_w) {}
  std::vector<Amount> operator()(double from_s, double to_s) const {
    const double inside_s = std::max(0.0, std::min(to_s, 20.0) - std::max(from_s, 10.0));
    Amount amount;
    amount.joules = 100 * (to_s - from_s) + more_w_ * inside_s;
    amount.off.sampling_j = 1;
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

// This is the example of docs/energy-account.md.
TEST(Charge, APhaseBesideTheProgramHasWhatIsMoreThanTheProgramUsesAlone) {
  Charger charger;
  const std::vector<Span> spans{{10, 20, Beside::program}};
  const Charges charges = charger.charge(spans, 0, 30, Node(50));
  EXPECT_DOUBLE_EQ(total(charges.spans[0]), 500);
  EXPECT_DOUBLE_EQ(total(charges.program), 3000);
}

// The program waits from second 12 on for a flush from second 10 to second 20. The line that ends
// with the flush is written before the wait is known.
TEST(Charge, APhaseThatIsChargedLaterHasAllFromTheTimeOfAWaitForIt) {
  Charger charger;
  const std::vector<Span> before{{10, 20, Beside::program, 1, true}};
  const Charges first = charger.charge(before, 0, 20, Node(50));
  EXPECT_DOUBLE_EQ(total(first.spans[0]), 0);
  EXPECT_DOUBLE_EQ(total(first.program), 2500);
  const std::vector<Span> spans{{10, 20, Beside::program}, {12, 20, Beside::waiting}};
  const Charges second = charger.charge(spans, 20, 30, Node(50));
  EXPECT_DOUBLE_EQ(total(second.spans[0]), 2 * 50 + 8 * 150);
  EXPECT_DOUBLE_EQ(total(second.spans[1]), 0);
  EXPECT_DOUBLE_EQ(total(first.program) + total(second.program), 1200 + 1000);
}

TEST(Charge, APhaseBesideWhichLessIsUsedHasLessThanNothing) {
  Charger charger;
  const std::vector<Span> spans{{10, 20, Beside::program}};
  const Charges charges = charger.charge(spans, 0, 30, Node(-20));
  EXPECT_NEAR(total(charges.spans[0]), -200, 1e-9);
  EXPECT_NEAR(total(charges.program), 3000, 1e-9);
}

// The program uses 40 W more and 40 W less in turn, for `period_s` each.
std::vector<Amount> square_wave(double period_s, double from_s, double to_s) {
  const auto joules_until = [&](double time_s) {
    const double within_s = std::fmod(time_s, 2 * period_s);
    return 200 * time_s + 40 * std::min(within_s, 2 * period_s - within_s);
  };
  Amount amount;
  amount.joules = joules_until(to_s) - joules_until(from_s);
  amount.covered_s = to_s - from_s;
  return {amount};
}

TEST(Charge, AProgramWhosePowerMovesMakesItUncertainWhatAPhaseBesideItHasUsed) {
  for (const double period_s : {0.7, 3.0, 11.0}) {
    Charger charger;
    const auto between = [&](double from_s, double to_s) {
      return square_wave(period_s, from_s, to_s);
    };
    double sum_j = 0;
    for (int line = 0; line < 40; ++line) {
      const double from_s = 60.0 * line;
      const double flush_s = from_s + 31 + 0.37 * line;
      const std::vector<Span> spans{{flush_s, flush_s + 5, Beside::program}};
      const Charges charges = charger.charge(spans, from_s, from_s + 60, between);
      EXPECT_LE(std::abs(total(charges.spans[0])), charges.spans[0].off[0].attribution_j)
          << period_s << " " << line;
      sum_j += total(charges.spans[0]);
    }
    // The mean is not further off than chance explains.
    EXPECT_LT(std::abs(sum_j) / 40, 60) << period_s;
  }
}

// The program's power changes in steps: a square wave, noise, a random walk, or short bursts.
class Restless {
 public:
  static constexpr int kKinds = 4;

  Restless(int kind, double seconds, std::mt19937& random) {
    const auto between = [&](double least, double most) {
      return std::uniform_real_distribution<double>(least, most)(random);
    };
    const double low_w = between(20, 200);
    const double high_w = low_w + between(20, 300);
    const double half_s = std::exp(between(std::log(0.02), std::log(8)));
    double watts = low_w;
    for (int step = 0; ends_s_.back() < seconds; ++step) {
      double length_s = half_s;
      if (kind == 0) watts = step % 2 == 0 ? low_w : high_w;
      if (kind == 1) watts = between(low_w, high_w);
      if (kind == 2) watts = std::clamp(watts + between(-0.2, 0.2) * high_w, low_w, high_w);
      if (kind == 3) watts = step % 2 == 0 ? low_w : high_w;
      if (kind == 3 && step % 2 == 0) length_s = between(0, 4);
      if (kind == 3 && step % 2 == 1) length_s = 0.02;
      joules_.push_back(joules_.back() + watts * length_s);
      ends_s_.push_back(ends_s_.back() + length_s);
    }
  }
  double joules(double time_s) const {
    const auto next = std::upper_bound(ends_s_.begin() + 1, ends_s_.end() - 1, time_s);
    const auto i = static_cast<std::size_t>(next - ends_s_.begin());
    const double share = (time_s - ends_s_[i - 1]) / (ends_s_[i] - ends_s_[i - 1]);
    return std::lerp(joules_[i - 1], joules_[i], share);
  }

 private:
  std::vector<double> ends_s_{0}, joules_{0};
};

// Returns how far what a phase beside the program is told to have used is off the truth, as a share
// of what it may be off. The phase is one of several in a job that begin at irregular times.
double off_share_of_a_phase(int kind, std::mt19937& random) {
  const auto between = [&](double least, double most) {
    return std::exp(
        std::uniform_real_distribution<double>(std::log(least), std::log(most))(random));
  };
  constexpr int kPhases = 8;
  const double apart_s = between(5, 50);
  const double phase_s = between(0.05, 0.6 * apart_s);
  const double more_w = between(1, 100);
  const Restless program(kind, kPhases * 1.5 * apart_s, random);
  std::vector<Span> spans;
  const auto used = [&](double from_s, double to_s) {
    Amount amount;
    amount.joules = program.joules(to_s) - program.joules(from_s);
    for (const Span& span : spans) {
      const double inside_s = std::min(to_s, span.to_s) - std::max(from_s, span.from_s);
      amount.joules += more_w * std::max(0.0, inside_s);
    }
    amount.covered_s = to_s - from_s;
    return std::vector<Amount>{amount};
  };
  Charger charger;
  Charge charge;
  double told_s = 0;
  for (int i = 0; i < kPhases; ++i) {
    const double from_s = told_s + between(0.5, 0.8) * apart_s;
    spans.push_back({from_s, from_s + phase_s, Beside::program});
    const double until_s = spans.back().to_s + 0.1 * apart_s;
    charge = charger.charge(std::span(&spans.back(), 1), told_s, until_s, used).spans[0];
    told_s = until_s;
  }
  return std::abs(total(charge) - more_w * phase_s) / charge.off.back().attribution_j;
}

TEST(Charge, TheTruthLiesWithinTheBoundWhateverTheProgramDoes) {
  constexpr int kCases = 2000;
  std::mt19937 random(17);
  int covered = 0;
  for (int i = 0; i < kCases; ++i)
    covered += off_share_of_a_phase(i % Restless::kKinds, random) <= 1 ? 1 : 0;
  EXPECT_GE(covered, 0.99 * kCases);
}

TEST(Charge, WhereTheProgramWasHardlyEverAloneAllOfAPhaseBesideItIsUncertain) {
  Charger charger;
  const std::vector<Span> spans{{2, 12, Beside::program}};
  const Charges charges = charger.charge(spans, 0, 12, Node(50));
  EXPECT_GE(charges.spans[0].off.back().attribution_j, 1000);
}

// A source takes its last value to go on, and is put right when it tells again.
TEST(Charge, WhatWasToldTooMuchOfTheLastLineIsTakenBackInTheNext) {
  Charger charger;
  double watts_at_end = 100;
  const auto between = [&](double from_s, double to_s) {
    Amount amount;
    const auto until = [&](double time_s) {
      return 100 * std::min(time_s, 9.0) + watts_at_end * std::max(0.0, time_s - 9);
    };
    amount.joules = until(to_s) - until(from_s);
    amount.covered_s = to_s - from_s;
    return std::vector{amount};
  };
  double told_j = total(charger.charge({}, 0, 10, between).whole);
  watts_at_end = 20;
  told_j += total(charger.charge({}, 10, 20, between).whole);
  EXPECT_NEAR(told_j, between(0, 20)[0].joules, 1e-9);
}

// A slow meter of the node does this when one of its windows is complete.
TEST(Charge, WhatWasToldTooMuchOfSeveralLinesIsTakenBackTogether) {
  Charger charger;
  double told_w = 120;
  const auto between = [&](double from_s, double to_s) {
    const auto until = [&](double time_s) {
      return told_w * std::min(time_s, 30.0) + 100 * std::max(0.0, time_s - 30);
    };
    Amount amount;
    amount.joules = until(to_s) - until(from_s);
    amount.covered_s = to_s - from_s;
    return std::vector{amount};
  };
  double told_j = 0;
  for (const double from_s : {0.0, 10.0, 20.0})
    told_j += total(charger.charge({}, from_s, from_s + 10, between).whole);
  told_w = 100;
  told_j += total(charger.charge({}, 30, 40, between).whole);
  EXPECT_NEAR(told_j, between(0, 40)[0].joules, 1e-9);
}

TEST(Charge, ASourceIsOffByTheSameShareOfAllThatItTells) {
  Charger charger;
  const Node node(50);
  const auto between = [&](double from_s, double to_s) {
    std::vector<Amount> amounts = node(from_s, to_s);
    for (Amount& amount : amounts) amount.off.sensor_j = 0.1 * amount.joules;
    return amounts;
  };
  const std::vector<Span> spans{{10, 12, Beside::nothing}, {12, 20, Beside::program}};
  const Charges charges = charger.charge(spans, 0, 30, between);
  const auto sensor_j = [](const Charge& charge) { return charge.off.back().sensor_j; };
  EXPECT_NEAR(sensor_j(charges.spans[0]), 30, 1e-9);
  EXPECT_NEAR(sensor_j(charges.spans[1]), 40, 1e-9);
  EXPECT_NEAR(sensor_j(charges.program) + 30 + 40, sensor_j(charges.whole), 1e-9);
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
  EXPECT_DOUBLE_EQ(charges.spans[0].off.back().sampling_j, 0.8);
}

TEST(Charge, PhasesThatTakeTurnsAreTogetherAsMuchAsAnotherOne) {
  Charger charger;
  const std::vector<Span> spans{
      {10, 20, Beside::nothing, 0.8}, {10, 20, Beside::nothing, 0.2}, {10, 20}};
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

// The first reading was at 10 s. The second quantity knows nothing at all.
std::vector<Amount> begun_at_10(double from_s, double to_s) {
  Amount amount;
  amount.covered_s = std::max(0.0, to_s - std::max(from_s, 10.0));
  amount.joules = 100 * amount.covered_s;
  amount.off.sampling_j = 1;
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

// While the program waits, a phase behind it has all of the energy. While it computes, nobody
// knows.
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

// Spans may overlap in any way.
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
      spans.push_back(
          {std::min(a, b), std::max(a, b), static_cast<Beside>(random() % 3), share(random)});
    }
    const Charges charges = charger.charge(spans, 0, 30, Node(50));
    double sum = total(charges.program);
    for (const Charge& charge : charges.spans) {
      sum += total(charge);
    }
    EXPECT_THAT(sum, DoubleNear(3500, 1e-6));
    EXPECT_THAT(total(charges.whole), DoubleNear(3500, 1e-6));
  }
}

}  // namespace
}  // namespace diapause::energy
