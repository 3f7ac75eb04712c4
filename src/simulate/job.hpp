// The input of a simulation: a job, its checkpoints, its machine, and the failures.
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

// Other jobs that write to the global tier from time to time and take a share of its rate
// meanwhile. The times are means of exponential distributions.
struct Contention {
  double quiet_s = 0;  // 0 stands for never
  double burst_s = 0;
  double share = 0;  // share of the rate that the others take, 0 to below 1
};

// The effect of lower clocks while checkpoints are written.
struct Throttling {
  double time_factor = 1;   // for the blocked time of a checkpoint, and for the work behind it
  double power_factor = 1;  // for checkpoint_w and behind_w
};

// The reaction of the job if nodes are lost and there is no spare one.
enum class WithoutSpare { wait, shrink };

struct Machine {
  Placement placement;
  std::vector<FailureClass> classes;
  // Failures besides those of the classes, in the order of time.
  std::vector<RecordedFailure> record;
  double record_period_s = 0;  // after which the record is repeated; 0: it is not
  // Nodes that replace lost ones at once; nullopt: there is always one.
  std::optional<std::uint32_t> spares;
  WithoutSpare without_spare = WithoutSpare::wait;
  // Seconds after which the job must stop and wait in the queue again.
  double allocation_s = kNever_s;
  double queue_s = 0;     // time that it waits in the queue
  Contention contention;  // for levels 4 and deeper
};

struct Job {
  // Their costs. Failure rates are ignored; downtimes apply by class.
  std::vector<model::Level> levels;
  // `every` are whole numbers. The deepest level may lack one: it is taken only at the end of an
  // allocation.
  model::Pattern pattern;
  model::Powers powers;
  Throttling throttling;
  double work_s = kNever_s;  // useful work after which the run ends, on all nodes
  // Time after which the run ends. At least one of the two limits is finite.
  double horizon_s = kNever_s;
};

// Returns Code::argument, naming what is wrong: levels, pattern and counts that do not match,
// negative or infinite times.
Status check(const Job& job, const Machine& machine);

}  // namespace diapause::simulate
