// The options of verbs about stored versions and jobs.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/arguments.hpp"

namespace diapause::cli {

// Each adds a verb. `arguments` must live until the arguments are parsed.
void add_list(CLI::App& app, ListArguments& arguments);
void add_show(CLI::App& app, ShowArguments& arguments);
void add_verify(CLI::App& app, VerifyArguments& arguments);
void add_prune(CLI::App& app, PruneArguments& arguments);
void add_inject(CLI::App& app, InjectArguments& arguments);
void add_jobs(CLI::App& app, JobsArguments& arguments);
void add_export(CLI::App& app, ExportArguments& arguments);

// Throw CLI::ParseError if the arguments do not go together.
void check_prune(const PruneArguments& arguments);
void check_inject(const InjectArguments& arguments);

}  // namespace diapause::cli
