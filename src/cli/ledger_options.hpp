// The options of verbs that read ledgers.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/arguments.hpp"

namespace diapause::cli {

// Each adds a verb. `arguments` must live until the arguments are parsed.
void add_energy(CLI::App& app, EnergyArguments& arguments);
void add_predict(CLI::App& app, PredictArguments& arguments);
void add_history(CLI::App& app, HistoryArguments& arguments);
void add_report(CLI::App& app, ReportArguments& arguments);

}  // namespace diapause::cli
