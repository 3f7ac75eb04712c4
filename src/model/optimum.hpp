// The optimal pattern of checkpoints, with all levels chosen together.
//
// A pattern consists of the work between checkpoints and, for each deeper level, of how many
// checkpoints one has that level (model/levels.hpp). The expected cost is a smooth function of all
// of them. It is first minimized over real numbers, beginning with Young's rule for each level
// alone; then the numbers are rounded, and their neighbours tried.
#pragma once

#include <optional>
#include <vector>

#include "model/levels.hpp"

namespace diapause::model {

enum class Goal { time, energy };

// A pattern and what a run with it costs.
struct Plan {
  std::vector<Level> levels;  // levels that are worthwhile: those with failures of their class
  Pattern pattern;
  Cost cost;

  double wall_per_work() const { return cost.wall_per_work(); }
};

// Returns the pattern with the least expected seconds, or joules, per useful work. Levels whose
// class never fails are left out. Returns nullopt if there are no failures or no levels, so that
// checkpoints are of no use. A level of which every checkpoint also has the next deeper level gets
// `every` = 1 there.
std::optional<Plan> best_plan(const std::vector<Level>& levels, const Powers& powers, Goal goal);

// Returns the plan with the least energy among the patterns whose expected time is at most (1 +
// most_longer) times the shortest, as far as patterns lie on the lower hull of time and energy.
// most_longer = 0 gives the shortest.
std::optional<Plan> best_plan_within(const std::vector<Level>& levels, const Powers& powers,
                                     double most_longer);

// The three plans of a job.
struct Plans {
  Plan shortest, cheapest, mixed;
};
std::optional<Plans> best_plans(const std::vector<Level>& levels, const Powers& powers,
                                double most_longer);

}  // namespace diapause::model
