// The options of `diapause plan` and `diapause simulate`.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/plan_arguments.hpp"

namespace diapause::cli {

// `arguments` must live until the arguments are parsed.
void add_plan(CLI::App& app, PlanArguments& arguments);
void add_simulate(CLI::App& app, SimulateArguments& arguments);

}  // namespace diapause::cli
