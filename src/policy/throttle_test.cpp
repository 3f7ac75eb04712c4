#include "policy/throttle.hpp"

#include <gmock/gmock.h>

#include <random>

namespace diapause::policy {
namespace {

using config::ThrottlePolicy;
using testing::DoubleNear;

constexpr double kNodeWatts = 100;  // of the whole node, with the processor at the base clock

// Returns a processor whose power falls with the cube of the clock, down to a half.
NodePower node(double rest_watts) {
  return {{0.5 * kNodeWatts, 3, 0.5 * kNodeWatts, 1}, rest_watts};
}

config::GovernorSettings settings(ThrottlePolicy policy) {
  config::GovernorSettings result;
  result.policy = policy;
  return result;
}

// A machine on which phases take a second at the base clock.
struct Machine {
  double phi = 0.5;
  std::optional<NodePower> power = node(0);
  bool has_counter = false;
  double seconds = 1;

  PhaseSeen run(double ratio) const {
    PhaseSeen seen{ratio, 1000, seconds * slowdown(phi, ratio), std::nullopt};
    if (has_counter) seen.node_joules = seen.seconds * (power->cpu.at(ratio) + power->rest);
    return seen;
  }
};

std::optional<NodePower> model_of(const Machine& machine) {
  return machine.has_counter ? std::nullopt : machine.power;
}

constexpr int kUntilTold = 9;  // phases: four pairs, and the first that follows from them

// Runs so many phases and returns what was chosen for each.
std::vector<Choice> run(Throttle& throttle, const Machine& machine, int phases) {
  std::vector<Choice> choices;
  for (int i = 0; i < phases; ++i) {
    choices.push_back(throttle.choose({PhaseKind::write, 1000}, model_of(machine)));
    throttle.learn(machine.run(choices.back().ratio));
  }
  return choices;
}

TEST(ThrottleModel, FindsThePublishedShareFromThePublishedSlowdowns) {
  EXPECT_THAT(cpu_bound_share(1.075, 0.875), DoubleNear(0.525, 0.001));
  EXPECT_THAT(cpu_bound_share(1.093, 0.85), DoubleNear(0.527, 0.001));
}

TEST(ThrottleModel, TakesAShareFromTimesAsTimesFromAShare) {
  for (const double phi : {0.0, 0.3, 1.0})
    EXPECT_NEAR(cpu_bound_share(slowdown(phi, 0.8), 0.8), phi, 1e-12);
}

TEST(ThrottleModel, TakesNoisyTimesForTheNearestShareThatCanBe) {
  EXPECT_EQ(cpu_bound_share(0.9, 0.85), 0);
  EXPECT_EQ(cpu_bound_share(1.5, 0.85), 1);
}

TEST(ThrottleModel, SlowsAPhaseThatOnlyWaitsAsFarAsItMay) {
  EXPECT_DOUBLE_EQ(best_ratio(node(0), 0, 0.6), 0.6);
}

TEST(ThrottleModel, LeavesABusyPhaseAloneWhereTheRestOfTheNodeDrawsMuch) {
  EXPECT_EQ(best_ratio(node(10 * kNodeWatts), 1, 0.5), 1);
}

TEST(ThrottleModel, FindsTheRatioWithTheLeastEnergy) {
  const double best = best_ratio(node(20), 0.5, 0.5);
  for (double ratio = 0.5; ratio < 1; ratio += 0.01) {
    EXPECT_LE(energy_ratio(node(20), 0.5, best), energy_ratio(node(20), 0.5, ratio) + 1e-6)
        << ratio;
  }
}

TEST(Throttle, SlowsNothingWhenItIsOff) {
  Throttle throttle(settings(ThrottlePolicy::off));
  for (const Choice& choice : run(throttle, {}, 5)) EXPECT_EQ(choice.ratio, 1);
}

TEST(Throttle, TakesTheFixedRatioOfTheKindOncePhasesAreKnownToBeLongEnough) {
  Throttle throttle(settings(ThrottlePolicy::fixed));
  EXPECT_EQ(throttle.choose({PhaseKind::write, 1000}, std::nullopt).why, Why::duration_unknown);
  throttle.learn({1, 1000, 1, std::nullopt});
  EXPECT_EQ(throttle.choose({PhaseKind::write, 1000}, std::nullopt).ratio, 0.85);
  EXPECT_EQ(throttle.choose({PhaseKind::compress, 1000}, std::nullopt).ratio, 0.875);
}

class EveryPolicy : public testing::TestWithParam<ThrottlePolicy> {};
INSTANTIATE_TEST_SUITE_P(Policies, EveryPolicy,
                         testing::Values(ThrottlePolicy::fixed, ThrottlePolicy::measured));

TEST_P(EveryPolicy, NeverSlowsAPhaseOfLessThan50Milliseconds) {
  Throttle throttle(settings(GetParam()));
  Machine machine;
  machine.seconds = 0.049;
  for (const Choice& choice : run(throttle, machine, 40)) EXPECT_EQ(choice.ratio, 1);
  EXPECT_EQ(throttle.choose({PhaseKind::write, 1000}, machine.power).why, Why::too_short);
}

TEST_P(EveryPolicy, ExpectsALargerPhaseToTakeLonger) {
  Throttle throttle(settings(GetParam()));
  throttle.learn({1, 1000, 0.049, std::nullopt});
  EXPECT_LT(throttle.choose({PhaseKind::write, 2000}, node(0)).ratio, 1);
}

TEST_P(EveryPolicy, NeverLetsAPhaseOutlastTheTimeItIsDue) {
  for (const double due_s : {0.5, 1.0, 1.02, 1.1, 1.2, 2.0}) {
    Throttle throttle(settings(GetParam()));
    const Machine machine;
    for (int i = 0; i < 40; ++i) {
      const Choice choice = throttle.choose({PhaseKind::write, 1000, due_s}, machine.power);
      const PhaseSeen seen = machine.run(choice.ratio);
      EXPECT_TRUE(choice.ratio == 1 || seen.seconds <= due_s) << i << " " << choice.ratio;
      throttle.learn(seen);
    }
  }
}

TEST_P(EveryPolicy, ReturnsToTheBaseClockAfterAPhaseThatTookMuchLongerThanExpected) {
  Throttle throttle(settings(GetParam()));
  Machine machine;
  EXPECT_LT(run(throttle, machine, 12).back().ratio, 1);
  machine.seconds = 3;
  const auto choices = run(throttle, machine, 2);
  EXPECT_LT(choices[0].ratio, 1);
  EXPECT_EQ(choices[1].ratio, 1);
}

TEST(MeasuredThrottle, ComparesATrialWithTheBaseClockAndThenSlowsToTheBestRatio) {
  auto patient = settings(ThrottlePolicy::measured);
  patient.max_slowdown_percent = 100;
  Throttle throttle(patient);
  const auto choices = run(throttle, {}, kUntilTold);
  EXPECT_EQ(choices[0].why, Why::duration_unknown);
  EXPECT_EQ(choices[1].why, Why::trial);
  EXPECT_EQ(choices[2].why, Why::comparison);
  EXPECT_EQ(choices.back().why, Why::saves);
  EXPECT_NEAR(*throttle.phi(), 0.5, 1e-9);
  EXPECT_DOUBLE_EQ(choices.back().ratio, best_ratio(node(0), *throttle.phi(), kLowestRatio));
}

TEST(MeasuredThrottle, DecidesByThePowerOfTheWholeNode) {
  Throttle throttle(settings(ThrottlePolicy::measured));
  Machine machine;
  machine.power = node(3 * kNodeWatts);
  EXPECT_EQ(run(throttle, machine, kUntilTold).back().why, Why::does_not_save_any);
}

TEST(MeasuredThrottle, DecidesByMeasuredJoulesWhereThereAreSome) {
  Machine machine;
  machine.has_counter = true;
  Throttle saving(settings(ThrottlePolicy::measured));
  const Choice choice = run(saving, machine, kUntilTold).back();
  EXPECT_EQ(choice.why, Why::saves);
  EXPECT_EQ(choice.ratio, 0.85);
  machine.power = node(3 * kNodeWatts);
  Throttle losing(settings(ThrottlePolicy::measured));
  EXPECT_EQ(run(losing, machine, kUntilTold).back().why, Why::does_not_save_any);
}

TEST(MeasuredThrottle, SlowsNothingWhereNothingTellsWhatTheNodeDraws) {
  Throttle throttle(settings(ThrottlePolicy::measured));
  Machine machine;
  machine.power.reset();
  for (const Choice& choice : run(throttle, machine, 40)) EXPECT_EQ(choice.ratio, 1);
  EXPECT_EQ(throttle.choose({PhaseKind::write, 1000}, std::nullopt).why, Why::power_unknown);
}

TEST(MeasuredThrottle, KeepsTheSlowdownBelowTheBound) {
  auto bounded = settings(ThrottlePolicy::measured);
  bounded.max_slowdown_percent = 5;
  Throttle throttle(bounded);
  const Choice choice = run(throttle, {}, kUntilTold).back();
  EXPECT_LT(choice.ratio, 1);
  EXPECT_LE(slowdown(0.5, choice.ratio), 1.05 + 1e-9);
}

TEST(MeasuredThrottle, ComparesAgainNowAndThen) {
  Throttle throttle(settings(ThrottlePolicy::measured));
  int slowed = 0;
  for (const Choice& choice : run(throttle, {}, 170)) slowed += choice.ratio < 1 ? 1 : 0;
  EXPECT_THAT(slowed, testing::AllOf(testing::Ge(150), testing::Le(162)));
}

TEST(MeasuredThrottle, FindsOutThatSlowingHasBecomeWorthwhile) {
  Throttle throttle(settings(ThrottlePolicy::measured));
  Machine machine;
  machine.power = node(kNodeWatts);
  machine.phi = 1;
  EXPECT_EQ(run(throttle, machine, 20).back().ratio, 1);
  machine.phi = 0;  // takes as long at the base clock, which only a trial shows
  EXPECT_LT(run(throttle, machine, 290).back().ratio, 1);
}

TEST(MeasuredThrottle, StaysWithWhatItDoesWhereBothWaysCostTheSame) {
  Throttle throttle(settings(ThrottlePolicy::measured));
  Machine machine;
  machine.has_counter = true;
  run(throttle, machine, kUntilTold);
  // The values scatter by two per cent around break-even, like counters.
  int changes = 0;
  double last = 0.85;
  for (int i = 0; i < 12; ++i) {
    const double ratio = throttle.choose({PhaseKind::write, 1000}, std::nullopt).ratio;
    changes += ratio != last ? 1 : 0;
    last = ratio;
    throttle.learn({ratio, 1000, slowdown(0.5, ratio), 100.0 - (i % 2)});
  }
  EXPECT_LE(changes, 2);
}

// Joules and times that scatter by `noise`. A slowed phase takes `cost` more joules.
struct Scattering {
  double cost = 0;
  double noise = 0.1;
  double time_noise = noise;
  int slowed = 0, decided = 0, all = 0;
  int tried() const { return slowed - decided; }

  void run(std::uint32_t seed, int phases) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    Throttle throttle(settings(ThrottlePolicy::measured));
    for (int i = 0; i < phases; ++i) {
      const Choice choice = throttle.choose({PhaseKind::write, 1000}, std::nullopt);
      const bool is_slowed = choice.ratio < 1;
      slowed += is_slowed;
      decided += choice.why == Why::saves;
      ++all;
      const double joules = 100 * (is_slowed ? 1 + cost : 1) * (1 + noise * normal(random));
      throttle.learn({choice.ratio, 1000, 1 + time_noise * normal(random), joules});
    }
  }
};

TEST(MeasuredThrottle, DoesNotActOnNoiseWhereClocksChangeNothing) {
  for (const double noise : {0.01, 0.03, 0.1}) {
    Scattering of_long{.noise = noise};
    for (std::uint32_t seed = 0; seed < 200; ++seed) of_long.run(seed, 1000);
    EXPECT_LE(of_long.slowed, 0.02 * of_long.all) << noise;  // trials are included
    Scattering of_short{.noise = noise};
    for (std::uint32_t seed = 0; seed < 1000; ++seed) of_short.run(seed, 60);
    EXPECT_LE(of_short.decided, 0.02 * of_short.all) << noise;
    EXPECT_LE(of_short.tried(), 0.12 * of_short.all) << noise;  // seven of 60
  }
}

// Three phases in a row that take a quarter longer or shorter are no rare event then.
TEST(MeasuredThrottle, DoesNotTryAgainAndAgainWhereTimesScatter) {
  for (const double time_noise : {0.15, 0.2, 0.3}) {
    Scattering scattering{.time_noise = time_noise};
    for (std::uint32_t seed = 0; seed < 200; ++seed) scattering.run(seed, 1000);
    EXPECT_LE(scattering.slowed, 0.02 * scattering.all) << time_noise;
  }
}

TEST(MeasuredThrottle, DoesNotSlowWhatCostsThreePercentUnderTenPercentOfNoise) {
  Scattering scattering{.cost = 0.03};
  for (std::uint32_t seed = 0; seed < 200; ++seed) scattering.run(seed, 1000);
  EXPECT_LE(scattering.slowed, 0.05 * scattering.all);
}

TEST(MeasuredThrottle, FindsWhatSavesTenPercentUnderThreePercentOfNoise) {
  Scattering scattering{.cost = -0.1, .noise = 0.03};
  for (std::uint32_t seed = 0; seed < 200; ++seed) scattering.run(seed, 1000);
  EXPECT_GE(scattering.decided, 0.8 * scattering.all);
}

}  // namespace
}  // namespace diapause::policy
