// The options of verbs that start programs, and that go on from their checkpoints.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/arguments.hpp"

namespace diapause::cli {

// Each adds a verb. `arguments` must live until the arguments are parsed.
// `unmarked` receives words in the place of the command without "--" before it.
void add_run(CLI::App& app, RunArguments& arguments, std::vector<std::string>& unmarked);
void add_launch(CLI::App& app, LaunchArguments& arguments, std::vector<std::string>& unmarked);
void add_checkpoint(CLI::App& app, CheckpointArguments& arguments);
void add_restart(CLI::App& app, RestartArguments& arguments);

}  // namespace diapause::cli
