// The content of a plan: schedules, their costs, the costs of wrong assumptions, and sensitivities.
// The functions are pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/job_model.hpp"
#include "model/optimum.hpp"
#include "simulate/search.hpp"

namespace diapause::cli {

struct Schedule {
  std::string name;  // "least time", "least energy" or "mixed"
  model::Plan plan;
};

// The additional cost of a wrong choice, as fractions: 0.01 is one percent.
struct Wrong {
  std::string what;  // like "interval twice as long"
  double more_time = 0;
  double more_energy = 0;
};

// The percentage by which the time and the energy grow if an input grows by one percent and the
// schedule stays.
struct Sensitivity {
  std::string input;
  double of_time = 0;
  double of_energy = 0;
};

// The result of simulated runs, for failures without a formula.
struct ByRuns {
  std::string failures;  // like "weibull:0.7", or the file of the trace
  std::vector<model::Level> levels;
  simulate::Found found;
  model::Pattern formula;  // the pattern that the search began with
  std::uint32_t replicas = 0;
};

// An approximation for one level.
struct Approximation {
  std::string name;
  double work_s = 0;
  double more_time = 0;
};

struct PlanReport {
  JobModel job;
  std::vector<Schedule> schedules;  // empty: nothing fails
  std::vector<Wrong> wrong;         // for the first schedule
  std::vector<Sensitivity> sensitivities;
  std::vector<Approximation> approximations;
  std::optional<ByRuns> by_runs;
};

// Says that nothing fails that a checkpoint of the job helps against, and what to do if something
// fails.
std::string nothing_helps_text(const JobModel& job);

// `bound` is how much longer than the shortest the mixed schedule may take, as a fraction.
PlanReport make_plan(const JobModel& job, double bound);

// The time-optimal plan for one size.
struct SizeRow {
  std::uint64_t nodes = 0;
  double mtbf_s = 0;
  std::optional<model::Plan> plan;
  std::vector<std::string> notes;
};

// Return the plan as tables and as JSON.
std::string plan_text(const PlanReport& report);
std::string plan_json(const PlanReport& report);
std::string sizes_text(const std::vector<SizeRow>& rows);
std::string sizes_json(const std::vector<SizeRow>& rows);

}  // namespace diapause::cli
