// What is simulated: a job, its checkpoints, its machine, and what fails.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/levels.hpp"
#include "simulate/failures.hpp"
#include "simulate/placement.hpp"

namespace diapause::simulate {

inline constexpr double kNever_s = std::numeric_limits<double>::infinity();

// Other jobs write to the global tier now and then, and take a share of its rate meanwhile. Mean times, exponential.
struct Contention {
  double quiet_s = 0;  // 0: never
  double burst_s = 0;
  double share = 0;  // of the rate, taken by the others: 0 to below 1
};

// Lower clocks while checkpoints are written.
struct Throttling {
  double time_factor = 1;   // of what a checkpoint blocks, and of what comes behind it
  double power_factor = 1;  // of checkpoint_w and behind_w
};

// What happens when nodes are lost and no spare one is there.
enum class WithoutSpare { wait, shrink };

struct Machine {
  Placement placement;
  std::vector<FailureClass> classes;
  std::vector<RecordedFailure> record;  // besides the classes, in the order of time
  double record_period_s = 0;           // after which the record begins again; 0: once
  std::optional<std::uint32_t> spares;  // nodes that replace lost ones at once; none: there is always one
  WithoutSpare without_spare = WithoutSpare::wait;
  double allocation_s = kNever_s;  // after which the job has to stop, and stand in the queue again
  double queue_s = 0;              // how long it stands there
  Contention contention;           // of levels 4 and deeper
};

struct Job {
  std::vector<model::Level> levels;  // what they cost; failure rates are not looked at, but for downtimes by class
  model::Pattern pattern;            // `every` are whole numbers
  model::Powers powers;
  Throttling throttling;
  double work_s = kNever_s;     // useful work after which the run ends, on all nodes
  double horizon_s = kNever_s;  // time after which it ends. At least one of both is finite
};

// Code::argument, naming what is wrong: levels, pattern and counts that do not fit, negative or endless times.
Status check(const Job& job, const Machine& machine);

}  // namespace diapause::simulate
