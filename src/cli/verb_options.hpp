// Options that several verbs have, and how their help ends.
#pragma once

#include <CLI/CLI.hpp>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.hpp"
#include "config/settings.hpp"

namespace diapause::cli {

// The exit statuses of most verbs.
inline constexpr const char* kUsualExitCodes =
    "Exit status:\n"
    "  0  done\n"
    "  3  wrong usage, an I/O error, nothing of that name, or a job that is running";

// Returns the examples, one per line, and the meaning of the verb's exit status.
std::string footer(std::initializer_list<const char*> examples, const char* exit_codes);

// Accepts natural numbers only. The library would let other numbers wrap around.
CLI::Validator natural();

// Accepts numbers from `least` to `most` only. The library's Range accepts what is no number (nan),
// and lets some integers wrap around.
CLI::Validator within(int least, int most);
CLI::Validator within(unsigned least, unsigned most);
CLI::Validator within(double least, double most);

// Accept what parse_time_s() and parse_size_bytes() do.
CLI::Validator a_time();
CLI::Validator a_size();

// Returns the settings that a job has without a configuration.
config::Settings default_settings();

// Each adds an option to a verb. The value must live until the arguments are parsed.
void add_config(CLI::App& verb, std::string& config);
void add_global(CLI::App& verb, std::optional<std::string>& global);
void add_places(CLI::App& verb, Places& places);
CLI::Option* add_job(CLI::App& verb, std::string& job);
void add_job_or_ledger(CLI::App& verb, std::string& job);
// Adds an option that takes one value and may be repeated.
CLI::Option* add_repeated(CLI::App& verb, const std::string& name, std::vector<std::string>& values,
                          const char* what);

}  // namespace diapause::cli
