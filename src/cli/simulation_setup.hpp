// What `simulate` plays, from what was typed.
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
  std::optional<double> expected_wall_per_work;  // by formula, where it holds for what is played
};

// Of the file; none where `path` is empty.
Result<std::optional<simulate::FailureTrace>> read_failure_trace(const std::string& path);

// `trace`: recorded failures, if they were asked for. Code::argument says what is wrong.
Result<SimulationSetup> simulation_setup(const SimulateArguments& arguments, const JobModel& model,
                                         const std::optional<simulate::FailureTrace>& trace);

}  // namespace diapause::cli
