#include "cli/power_options.hpp"

#include <fmt/format.h>

#include "cli/verb_options.hpp"
#include "config/settings.hpp"

namespace diapause::cli {
namespace {

constexpr const char* kExitCodes =
    "Exit status:\n"
    "  0  done\n"
    "  3  wrong usage, an I/O error, or (record, calibrate) nothing that could be measured";
constexpr double kMostSeconds = 1e9;

void add_choice(CLI::App& verb, MeterChoice& choice) {
  const config::EnergySettings defaults;
  verb.add_option("--config", choice.config, "Configuration file [$DIAPAUSE_CONFIG, or none]")
      ->option_text("FILE");
  verb.add_option("--meters", choice.meters, "Names of meters, separated by commas, or auto")
      ->option_text("NAMES")
      ->delimiter(',')
      ->default_str(fmt::format("{}", fmt::join(defaults.meters, ",")));
  verb.add_option("--period-ms", choice.period_ms, "Milliseconds between two samples")
      ->option_text("N")
      ->check(within(1, 60000))
      ->default_str(std::to_string(defaults.period_ms));
  verb.add_option("--profile", choice.profile,
                  "Profile of the machine for the model: a name or a file")
      ->option_text("PROFILE")
      ->default_str(defaults.profile);
}

void add_record(CLI::App& power, PowerRecordArguments& arguments) {
  CLI::App& verb = *power.add_subcommand("record", "Writes a trace that can be replayed");
  verb.add_option("file", arguments.file, "File to write; an old file is replaced")
      ->option_text("FILE")
      ->required();
  verb.add_option("--seconds", arguments.seconds,
                  "Record for S seconds [until it is ended, as by Ctrl-C]")
      ->option_text("S")
      ->check(within(0.0, kMostSeconds));
  add_choice(verb, arguments.choice);
  verb.footer(std::string("Examples:\n  diapause power record run.trace\n"
                          "  diapause power record run.trace --seconds 60 --period-ms 10\n\n") +
              kExitCodes);
}

void add_align(CLI::App& power, PowerAlignArguments& arguments) {
  CLI::App& verb =
      *power.add_subcommand("align", "Finds the clock offset of an external meter, by correlation");
  verb.add_option("meter", arguments.meter, "CSV file of the external meter")
      ->option_text("METER.csv")
      ->required();
  verb.add_option("trace", arguments.trace,
                  "Trace that `power record` wrote on this node at the same time")
      ->option_text("TRACE")
      ->required();
  verb.add_option("--column", arguments.column,
                  "Column of the meter, such as node_w [the first one]")
      ->option_text("NAME");
  verb.add_option("--within", arguments.within_s, "Greatest difference of the clocks, in seconds")
      ->option_text("S")
      ->check(within(1.0, 86400.0))
      ->capture_default_str();
  verb.footer(std::string("Examples:\n  diapause power align meter.csv run.trace\n\n") +
              kExitCodes);
}

void add_calibrate(CLI::App& power, PowerCalibrateArguments& arguments) {
  CLI::App& verb = *power.add_subcommand(
      "calibrate", "Fits a profile for the model on a machine that has counters");
  verb.add_option("file", arguments.file, "File for the profile [standard output]")
      ->option_text("FILE");
  verb.add_option("--seconds", arguments.step_s, "Seconds that each step lasts")
      ->option_text("S")
      ->check(within(0.2, 3600.0))
      ->capture_default_str();
  verb.add_option("--samples", arguments.samples,
                  "Add the measurements to this file, and fit all that it has: run once at each "
                  "clock for P(f)")
      ->option_text("FILE");
  verb.add_option("--directory", arguments.directory,
                  "Directory on the disk whose energy per byte is fitted")
      ->option_text("PATH");
  verb.add_flag("--validate", arguments.validate,
                "Measure all steps again, and write into the profile how far it is off in these "
                "(hold-out error)");
  add_choice(verb, arguments.choice);
  verb.footer(
      std::string(
          "Examples:\n  diapause power calibrate node.toml --validate --directory /scratch\n"
          "  srun --cpu-freq=1800000 diapause power calibrate node.toml --samples node.jsonl\n\n") +
      kExitCodes);
}

}  // namespace

CLI::App& PowerOptions::add(CLI::App& app) {
  verb_ = app.add_subcommand("power",
                             "Shows the power of the node, by meter, and what cannot be measured");
  verb_->require_subcommand(0, 1);
  verb_->add_flag("--once", live_.once, "Measure once instead of repeatedly");
  verb_->add_flag("--json", live_.json, "JSON, one document in each line");
  verb_->add_option("--interval", live_.interval_s, "Seconds of one measurement")
      ->option_text("S")
      ->check(within(0.01, 3600.0))
      ->capture_default_str();
  verb_
      ->add_option("--openmetrics", live_.openmetrics,
                   "Also keep this file up to date, for a node exporter")
      ->option_text("FILE");
  add_choice(*verb_, live_.choice);
  add_record(*verb_, record_);
  add_align(*verb_, align_);
  add_calibrate(*verb_, calibrate_);
  verb_->footer(std::string("Examples:\n  diapause power\n  diapause power --once --json\n"
                            "  diapause power record run.trace\n\n") +
                kExitCodes);
  return *verb_;
}

std::variant<PowerArguments, PowerRecordArguments, PowerAlignArguments, PowerCalibrateArguments>
PowerOptions::chosen() const {
  if (verb_->got_subcommand("record")) return record_;
  if (verb_->got_subcommand("align")) return align_;
  if (verb_->got_subcommand("calibrate")) return calibrate_;
  return live_;
}

}  // namespace diapause::cli
