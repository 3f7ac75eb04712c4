// What a plan says: schedules, what they cost, what being wrong costs, and what matters. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/job_model.hpp"
#include "model/optimum.hpp"
#include "simulate/search.hpp"

namespace diapause::cli {

struct Schedule {
  std::string name;  // "least time", "least energy", "mixed"
  model::Plan plan;
};

// How much more, as shares: 0.01 is one percent.
struct Wrong {
  std::string what;  // "interval twice as long"
  double more_time = 0;
  double more_energy = 0;
};

// By how many percent the time and the energy grow if an input grows by one percent, at the same schedule.
struct Sensitivity {
  std::string input;
  double of_time = 0;
  double of_energy = 0;
};

// What runs among failures found, that no formula knows.
struct ByRuns {
  std::string failures;  // "weibull:0.7", or the file of the trace
  std::vector<model::Level> levels;
  simulate::Found found;
  model::Pattern formula;  // that the search began with
  std::uint32_t replicas = 0;
};

// One level's approximations.
struct Approximation {
  std::string name;
  double work_s = 0;
  double more_time = 0;
};

struct PlanReport {
  JobModel job;
  std::vector<Schedule> schedules;  // empty: nothing fails
  std::vector<Wrong> wrong;         // of the first one
  std::vector<Sensitivity> sensitivities;
  std::vector<Approximation> approximations;
  std::optional<ByRuns> by_runs;
};

// `bound`: how much longer than the shortest the mixed one may take, as a share.
PlanReport make_plan(const JobModel& job, double bound);

// At the optimum of each size, by time.
struct SizeRow {
  std::uint64_t nodes = 0;
  double mtbf_s = 0;
  std::optional<model::Plan> plan;
};

// As the tables and as JSON.
std::string plan_text(const PlanReport& report);
std::string plan_json(const PlanReport& report);
std::string sizes_text(const std::vector<SizeRow>& rows);
std::string sizes_json(const std::vector<SizeRow>& rows);

}  // namespace diapause::cli
