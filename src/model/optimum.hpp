// The pattern of checkpoints that costs the least, all levels chosen together.
//
// A pattern is the work between checkpoints and, for each deeper level, of how many checkpoints one is of that level
// (model/levels.hpp). The expected cost is smooth in all of them, so it is first made least over real numbers,
// beginning where Young's rule for each level alone says; then the numbers are made whole, and their neighbours tried.
#pragma once

#include <optional>
#include <vector>

#include "model/levels.hpp"

namespace diapause::model {

enum class Goal { time, energy };

// What a run costs at a pattern.
struct Plan {
  std::vector<Level> levels;  // those that are worth it: with failures of their class
  Pattern pattern;
  Cost cost;

  double wall_per_work() const { return cost.wall_per_work(); }
};

// The pattern with the least expected seconds, or joules, per useful work. Levels whose class never fails are left out.
// None: there are no failures, or no levels, and checkpoints are of no use. A level of which every checkpoint is also
// one of the next deeper level has `every` = 1 there.
std::optional<Plan> best_plan(const std::vector<Level>& levels, const Powers& powers, Goal goal);

// The least energy among the patterns whose expected time is at most (1 + most_longer) times the shortest, as far as
// patterns lie on the lower hull of time and energy. most_longer = 0 gives the shortest.
std::optional<Plan> best_plan_within(const std::vector<Level>& levels, const Powers& powers, double most_longer);

// All three of a job.
struct Plans {
  Plan shortest, cheapest, mixed;
};
std::optional<Plans> best_plans(const std::vector<Level>& levels, const Powers& powers, double most_longer);

}  // namespace diapause::model
