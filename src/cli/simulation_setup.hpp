// Builds the input of `simulate` from the arguments.
#pragma once

#include <optional>

#include "cli/job_model.hpp"
#include "model/optimum.hpp"
#include "simulate/job.hpp"
#include "simulate/trace_file.hpp"

namespace diapause::cli {

struct SimulationSetup {
  JobModel model;
  simulate::Job job;
  simulate::Machine machine;
  // The result of the formula, where it applies to what is simulated.
  std::optional<double> expected_wall_per_work;
};

// Reads the trace from the file; nullopt if `path` is empty.
Result<std::optional<simulate::FailureTrace>> read_failure_trace(const std::string& path);

// `trace` are recorded failures, if they were asked for. Code::argument says what is wrong.
Result<SimulationSetup> simulation_setup(const SimulateArguments& arguments, const JobModel& model,
                                         const std::optional<simulate::FailureTrace>& trace);

}  // namespace diapause::cli
