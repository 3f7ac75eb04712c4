#include "simulate/search.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "model/one_level.hpp"
#include "simulate/simulation.hpp"

namespace diapause::simulate {
namespace {

// A cost that is least at 300 s and every fifth.
std::vector<double> bowl(const model::Pattern& pattern, std::uint64_t) {
  const double work = std::log(pattern.work_s / 300);
  const double every = std::log(pattern.every[1] / 5);
  return {1 + work * work + every * every};
}

TEST(Search, ComesNearTheLeastFromFarAway) {
  const Found found = best_pattern({10, {1, 80}}, bowl, 1);
  EXPECT_NEAR(std::log(found.pattern.work_s / 300), 0, 0.1);
  EXPECT_EQ(found.pattern.every[1], 5);
  EXPECT_NEAR(found.saved.mean, 1 - found.value.mean / found.start_value.mean, 1e-12);
}

TEST(Search, JudgesByOtherRunsThanItChoseBy) {
  std::vector<std::uint64_t> seeds;
  (void)best_pattern(
      {10, {1, 80}},
      [&](const model::Pattern& pattern, std::uint64_t seed) {
        seeds.push_back(seed);
        return bowl(pattern, seed);
      },
      7);
  EXPECT_EQ(seeds.front(), 7u);
  EXPECT_NE(seeds.back(), 7u);
  EXPECT_EQ(seeds[seeds.size() - 2], seeds.back());
}

struct Played {
  Job job;
  Machine machine;

  // Twenty nodes, of which one fails every 5000 s in the long run; a checkpoint takes 40 s.
  explicit Played(const model::FailureLaw& law) {
    job.levels = {{4, 40, 0, 0, 60, 0, 1 / 5000.}};
    job.horizon_s = 3e6;
    machine.placement.nodes = 20;
    FailureClass one;
    one.law = law;
    one.law.mean_s = 20 * 5000;
    one.least_level = 4;
    machine.classes = {one};
  }
  Found search(double work_s) {
    const Play play = [this](const model::Pattern& pattern, std::uint64_t first_seed) {
      job.pattern = pattern;
      std::vector<double> values;
      for (std::uint64_t i = 0; i < 12; ++i) {
        const History run = simulate(job, machine, first_seed + i);
        values.push_back(run.wall_s / run.work_s);
      }
      return values;
    };
    return best_pattern({work_s, {1}}, play, 1);
  }
};

TEST(Search, FindsNothingBetterThanTheFormulaWhereThatHolds) {
  const model::OneLevel formula{5000, 40, 60, 0};
  const double best_s = model::time_optimal_work_s(formula);
  Played played({model::LawKind::exponential, 0, 1});
  const Found found = played.search(best_s);
  EXPECT_LE(found.saved.low(), 0.001);
  EXPECT_LE(model::time_excess(formula, found.pattern.work_s), 0.003);
}

TEST(Search, LeavesAnIntervalThatIsFarTooShort) {
  const model::OneLevel formula{5000, 40, 60, 0};
  Played played({model::LawKind::exponential, 0, 1});
  const Found found = played.search(model::time_optimal_work_s(formula) / 6);
  EXPECT_LE(model::time_excess(formula, found.pattern.work_s), 0.003);
  EXPECT_GT(found.saved.low(), 0.05);
}

}  // namespace
}  // namespace diapause::simulate
