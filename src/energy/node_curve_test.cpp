#include "energy/node_curve.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace diapause::energy {
namespace {

// The processors of the node go up and down, and the power of its rest wanders. Power is constant
// for a hundredth of a second.
class MovingNode {
 public:
  static constexpr double kSeconds = 400;

  explicit MovingNode(std::uint32_t seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> any(0, 1);
    const double per_part = 1.05 + 0.2 * any(random);
    const double half_s = std::exp(std::log(0.3) + std::log(30.0) * any(random));
    const double low_w = 40 + 60 * any(random);
    const double high_w = low_w + 100 * any(random);
    const double wander_w = 5 * any(random);
    const double period_s = 20 + 100 * any(random);
    rest_w_ = 60 + 100 * any(random);
    for (double time_s = 0; time_s < kSeconds; time_s += kStepS) {
      const double part_w = std::fmod(time_s, 2 * half_s) < half_s ? low_w : high_w;
      const double rest_w =
          rest_w_ + wander_w * (std::sin(time_s / period_s * 6.28) + any(random) - 0.5);
      parts_j_.push_back(parts_j_.back() + kStepS * part_w);
      node_j_.push_back(node_j_.back() + kStepS * (rest_w + per_part * part_w));
    }
  }
  double node_j(double from_s, double to_s) const {
    return at(node_j_, to_s) - at(node_j_, from_s);
  }
  double parts_j(double from_s, double to_s) const {
    return at(parts_j_, to_s) - at(parts_j_, from_s);
  }

 private:
  static constexpr double kStepS = 0.01;
  static double at(const std::vector<double>& joules, double time_s) {
    const double place = std::clamp(time_s, 0.0, kSeconds) / kStepS;
    const auto before = std::min(static_cast<std::size_t>(place), joules.size() - 2);
    return std::lerp(joules[before], joules[before + 1], place - static_cast<double>(before));
  }
  double rest_w_ = 0;
  std::vector<double> node_j_{0}, parts_j_{0};
};

// The management controller shows every two seconds the mean of the last two seconds, in whole
// watts.
class TwoMeters {
 public:
  static constexpr double kUpdateS = 2;

  explicit TwoMeters(std::uint32_t seed) : truth(seed) {
    Zone zone;
    zone.quantity = Quantity::power;
    zone.unit = 1;
    zone.update_s = kUpdateS;
    Accumulator accumulator(zone, 0.1);
    for (double now_s = kUpdateS; now_s <= MovingNode::kSeconds; now_s += kUpdateS) {
      const double watts = truth.node_j(now_s - kUpdateS, now_s) / kUpdateS;
      if (const auto point = accumulator.add(now_s, static_cast<std::uint64_t>(std::lround(watts))))
        slow.add(*point);
      curve.learn(slow, parts);
    }
  }
  Amount told(double from_s, double to_s) const { return curve.between(slow, parts, from_s, to_s); }

  MovingNode truth;
  Series slow{{kUpdateS, 1.5 * kUpdateS, 0, 2, {}}};
  NodeCurve curve{kUpdateS};
  NodeCurve::Parts parts = [this](double from_s, double to_s) {
    Amount amount;
    amount.joules = truth.parts_j(from_s, to_s);
    amount.covered_s = to_s - from_s;
    amount.off.sampling_j = 0.2;
    return amount;
  };
};

TEST(NodeCurve, PhasesOfAnyLengthLieWithinWhatIsTold) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> any(0, 1);
  int covered = 0, told = 0;
  std::vector<double> needed;  // as a share of the joules that are told
  std::vector<double> surer;   // the ratio to the slow meter alone
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const TwoMeters node(seed);
    for (int phase = 0; phase < 20; ++phase) {
      const double length_s = std::exp(std::log(0.1) + std::log(300.0) * any(random));
      const double from_s = 5 + (MovingNode::kSeconds - length_s - 10) * any(random);
      const Amount amount = node.told(from_s, from_s + length_s);
      const double truth_j = node.truth.node_j(from_s, from_s + length_s);
      covered += std::abs(amount.joules - truth_j) <= amount.off.sampling_j;
      needed.push_back(std::abs(amount.joules - truth_j) / amount.off.sampling_j);
      ++told;
      surer.push_back(amount.off.sampling_j /
                      node.slow.between(from_s, from_s + length_s).off.sampling_j);
    }
  }
  std::ranges::sort(surer);
  EXPECT_GE(covered, 0.99 * told);
  EXPECT_LE(surer[surer.size() / 2], 0.5);
  std::ranges::sort(needed);
  EXPECT_GE(needed[needed.size() * 99 / 100], 0.4);
}

TEST(NodeCurve, WhatAPhaseAddsIsFoundThoughTheMeterOfTheNodeSmearsIt) {
  const TwoMeters node(1);
  double off_j = 0, off_slow_j = 0;
  for (double from_s = 100; from_s < 300; from_s += 0.7) {
    const double truth_j = node.truth.node_j(from_s, from_s + 0.3);
    off_j += std::abs(node.told(from_s, from_s + 0.3).joules - truth_j);
    off_slow_j += std::abs(node.slow.between(from_s, from_s + 0.3).joules - truth_j);
  }
  EXPECT_LT(off_j, off_slow_j / 2);
}

TEST(NodeCurve, TheTotalIsThatOfTheMeterThatSeesTheNode) {
  const TwoMeters node(2);
  const double slow_j = node.slow.between(2, 398).joules;
  EXPECT_NEAR(node.told(2, 398).joules, slow_j, 0.01 * slow_j);
}

TEST(NodeCurve, StretchesThatAdjoinAddUp) {
  const TwoMeters node(4);
  double sum_j = 0;
  for (double from_s = 10; from_s < 390; from_s += 0.5)
    sum_j += node.told(from_s, from_s + 0.5).joules;
  EXPECT_NEAR(sum_j, node.told(10, 390).joules, 1e-6 * sum_j);
}

TEST(NodeCurve, BeforeEnoughIsLearntTheSlowMeterCountsAlone) {
  TwoMeters node(5);
  const NodeCurve fresh(TwoMeters::kUpdateS);
  EXPECT_DOUBLE_EQ(fresh.between(node.slow, node.parts, 50, 51).joules,
                   node.slow.between(50, 51).joules);
}

TEST(NodeCurve, WhereThePartsHaveAGapTheSlowMeterCountsAlone) {
  const TwoMeters node(6);
  const NodeCurve::Parts silent = [](double from_s, double to_s) {
    Amount amount;
    amount.gap_s = to_s - from_s;
    return amount;
  };
  EXPECT_DOUBLE_EQ(node.curve.between(node.slow, silent, 50, 51).joules,
                   node.slow.between(50, 51).joules);
}

TEST(PartsFit, AWattOfThePartsAddsAboutWhatSuppliesTakeUntilSomethingElseIsSeen) {
  const auto at = [](double parts_w, double node_w) {
    const PartsFit::Powers powers{parts_w, node_w};
    return PartsFit::Window{powers, {powers, powers, powers, powers}};
  };
  PartsFit steady;
  for (int i = 0; i < 8; ++i) steady.add(at(100, 200));
  EXPECT_NEAR(steady.per_part(), 1.15, 1e-9);
  EXPECT_NEAR(steady.watts(100), 200, 1e-9);
  PartsFit moving;
  for (int i = 0; i < 8; ++i) moving.add(at(100.0 + 10 * i, 200 + 1.4 * 10 * i));
  EXPECT_NEAR(moving.per_part(), 1.4, 0.01);
}

}  // namespace
}  // namespace diapause::energy
