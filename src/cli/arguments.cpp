#include "cli/arguments.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/ledger_options.hpp"
#include "cli/plan_options.hpp"
#include "cli/power_options.hpp"
#include "cli/running_options.hpp"
#include "cli/study_options.hpp"
#include "cli/verb_options.hpp"
#include "cli/version_options.hpp"
#include "config/keys.hpp"

namespace diapause::cli {
namespace {

// Shows an option's value followed by its default, if it has one. The library shows only one of the
// two.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string text = CLI::Formatter::make_option_opts(option);
    const std::string value = option->get_default_str();
    const bool is_shown = option->get_option_text().empty() || value.empty();
    return is_shown ? text : fmt::format("{} [{}]", text, value);
  }
};

void add_power_restore(CLI::App& power, PowerRestoreArguments& arguments) {
  CLI::App& verb =
      *power.add_subcommand("restore", "Restores clocks and limits that jobs have left changed");
  verb.add_option("--state", arguments.state,
                  "Directory of the governor, instead of the configured one")
      ->option_text("PATH");
  add_config(verb, arguments.config);
  verb.footer(
      footer({"diapause power restore", "diapause power restore --state /dev/shm/diapause-power-0"},
             kUsualExitCodes));
}

void add_power_watch(CLI::App& power, PowerWatchArguments& arguments) {
  CLI::App& verb = *power.add_subcommand("watch", "Started by the governor")->group("");
  verb.add_option("--state", arguments.state)->required();
  verb.add_option("--owner", arguments.owner)->required();
}

// Takes the words behind the first "--" of `run` or `launch`, which are the command, whatever they
// look like.
std::vector<std::string> take_command(std::vector<std::string>& words) {
  const auto mark = std::find(words.begin(), words.end(), "--");
  if (mark == words.end()) return {};
  std::vector<std::string> command(mark + 1, words.end());
  words.erase(mark, words.end());
  return command;
}

// All arguments that can be typed, and the values that were.
struct Typed {
  ListArguments list;
  ShowArguments show;
  VerifyArguments verify;
  PruneArguments prune;
  InjectArguments inject;
  RunArguments run;
  JobsArguments jobs;
  HistoryArguments history;
  ExportArguments exported;
  std::vector<std::string> unmarked;  // words of `run` in the place of its command
  LaunchArguments launch;
  std::vector<std::string> unmarked_launch;  // the same, for `launch`
  CheckpointArguments checkpoint;
  RestartArguments restart;
  EnergyArguments energy;
  ReportArguments report;
  PowerOptions power_options;
  PowerRestoreArguments power_restore;
  PowerWatchArguments power_watch;
  StudyOptions study_options;
  PredictArguments predict;
  PlanArguments plan;
  SimulateArguments simulate;
  CLI::App* power = nullptr;
  CLI::App* study = nullptr;

  // This object must live until the arguments are parsed.
  void add_to(CLI::App& app) {
    add_list(app, list);
    add_show(app, show);
    add_verify(app, verify);
    add_prune(app, prune);
    add_inject(app, inject);
    add_run(app, run, unmarked);
    add_jobs(app, jobs);
    add_history(app, history);
    add_export(app, exported);
    add_launch(app, launch, unmarked_launch);
    add_checkpoint(app, checkpoint);
    add_restart(app, restart);
    add_energy(app, energy);
    add_report(app, report);
    add_predict(app, predict);
    add_plan(app, plan);
    add_simulate(app, simulate);
    power = &power_options.add(app);
    add_power_restore(*power, power_restore);
    add_power_watch(*power, power_watch);
    study = &study_options.add(app);
  }

  // Checks combinations of arguments. Throws CLI::ParseError for an invalid one.
  void check(const CLI::App& app) const {
    if (app.got_subcommand("run")) {
      if (!unmarked.empty())
        throw CLI::ValidationError("run", "put -- before the command: -- " + unmarked[0]);
      if (run.command.empty()) throw CLI::ValidationError("run", "give a command: -- COMMAND");
    }
    if (app.got_subcommand("launch")) {
      if (!unmarked_launch.empty()) {
        throw CLI::ValidationError("launch", "put -- before the command: -- " + unmarked_launch[0]);
      }
      if (launch.command.empty())
        throw CLI::ValidationError("launch", "give a command: -- COMMAND");
    }
    if (app.got_subcommand("prune")) check_prune(prune);
    if (app.got_subcommand("inject")) check_inject(inject);
  }

  Arguments chosen(const CLI::App& app) const {
    if (app.got_subcommand("list")) return list;
    if (app.got_subcommand("show")) return show;
    if (app.got_subcommand("verify")) return verify;
    if (app.got_subcommand("prune")) return prune;
    if (app.got_subcommand("inject")) return inject;
    if (app.got_subcommand("jobs")) return jobs;
    if (app.got_subcommand("history")) return history;
    if (app.got_subcommand("export")) return exported;
    if (app.got_subcommand("launch")) return launch;
    if (app.got_subcommand("checkpoint")) return checkpoint;
    if (app.got_subcommand("restart")) return restart;
    if (app.got_subcommand("energy")) return energy;
    if (app.got_subcommand("report")) return report;
    if (app.got_subcommand("predict")) return predict;
    if (app.got_subcommand("plan")) return plan;
    if (app.got_subcommand("simulate")) return simulate;
    if (app.got_subcommand("study")) {
      return std::visit([](const auto& which) { return Arguments(which); }, study_options.chosen());
    }
    if (power->got_subcommand("restore")) return power_restore;
    if (power->got_subcommand("watch")) return power_watch;
    if (app.got_subcommand("power")) {
      return std::visit([](const auto& which) { return Arguments(which); }, power_options.chosen());
    }
    return run;
  }
};

// Returns the names of the verbs below `app`, without internal ones.
std::vector<std::string> names_of_verbs(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb :
       app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
    names.push_back(verb->get_name());
  }
  return names;
}

// Throws CLI::ParseError if the word at this place should be a verb and is none. The library would
// only report a missing verb.
void check_verb(const CLI::App& app, const std::vector<std::string>& words, std::size_t place) {
  if (place >= words.size() || words[place].empty() || words[place][0] == '-') return;
  const auto is_meant = [&](const CLI::App* verb) { return verb->get_name() == words[place]; };
  if (!app.get_subcommands(is_meant).empty()) return;
  const std::vector<std::string> names = names_of_verbs(app);
  const std::string typed = fmt::format(
      "{}", fmt::join(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(place) + 1, " "));
  const std::string nearest = config::did_you_mean(words[place], names);
  throw CLI::ValidationError(fmt::format("there is no verb {}{} The verbs are {}.",
                                         config::quoted(typed), nearest, fmt::join(names, ", ")));
}

}  // namespace

std::variant<Arguments, int> parse_arguments(int argc, char** argv) {
  CLI::App app("Looks after the checkpoints of programs, and after the programs.", "diapause");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("diapause ") + DIAPAUSE_CLI_VERSION);
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return fmt::format("diapause: {}\nSee diapause --help, and --help after a verb.\n",
                       error.what());
  });
  app.formatter(std::make_shared<HelpFormatter>());
  app.get_formatter()->column_width(28);
  Typed typed;
  typed.add_to(app);

  std::vector<std::string> words(argv + 1, argv + argc);
  const bool is_run = !words.empty() && words[0] == "run";
  const bool is_launch = !words.empty() && words[0] == "launch";
  const bool is_restart = !words.empty() && words[0] == "restart";
  if (is_run) typed.run.command = take_command(words);
  if (is_launch) typed.launch.command = take_command(words);
  try {
    check_verb(app, words, 0);
    if (!words.empty() && words[0] == "study") check_verb(*typed.study, words, 1);
    if (!words.empty() && words[0] == "power") check_verb(*typed.power, words, 1);
    std::reverse(words.begin(), words.end());  // the order that the library expects
    app.parse(words);
    typed.check(app);
  } catch (const CLI::ParseError& error) {
    if (app.exit(error) == 0) return kDone;
    return is_run || is_launch || is_restart ? kCannotRun : kTrouble;
  }
  return typed.chosen(app);
}

}  // namespace diapause::cli
