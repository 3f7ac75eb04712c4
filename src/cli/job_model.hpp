// The job that `plan` and `simulate` work on, built from typed values, a profile, and measurements
// in a ledger.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/plan_arguments.hpp"
#include "model/levels.hpp"

namespace diapause::cli {

struct JobModel {
  std::vector<model::Level> levels;  // each with the failures that it recovers from
  model::Powers powers;              // powers of all nodes
  std::uint32_t nodes = 1;
  double bytes = 0;  // bytes of all ranks
  std::uint32_t group_nodes = 4, parity = 1;
  // The level that stands against all failures that no level of the job stands against; 0: none is
  // left out.
  int lacks_level = 0;
  std::vector<std::string> notes;  // sources of numbers that nobody gave
};

inline constexpr const char* kClassNames[] = {"", "process", "node", "nodes", "system", "site"};

// Reads the profile and the ledger that the options name, and builds the model. Typed values take
// precedence, then measured ones, then those that follow from the profile. Code::argument says what
// is missing or wrong.
Result<JobModel> load_job_model(const JobOptions& options);

}  // namespace diapause::cli
