#include "cli/arguments.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>

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

// A verb of the command line.
struct Verb {
  std::string name;
  std::function<void(CLI::App&)> add;
  std::function<Arguments()> chosen;  // what was typed after the verb
  // Checks combinations of arguments. Throws CLI::ParseError for an invalid one.
  std::function<void()> check = [] {};
};

template <typename ArgumentsOfVerb>
Verb simple_verb(const char* name, void (*add)(CLI::App&, ArgumentsOfVerb&),
                 ArgumentsOfVerb& arguments) {
  return {name, [add, &arguments](CLI::App& app) { add(app, arguments); },
          [&arguments] { return Arguments(arguments); }};
}

// A verb that is followed by "--" and a command. `unmarked` are words in the place of the command.
template <typename ArgumentsOfVerb>
Verb starting_verb(const char* name,
                   void (*add)(CLI::App&, ArgumentsOfVerb&, std::vector<std::string>&),
                   ArgumentsOfVerb& arguments, std::vector<std::string>& unmarked) {
  Verb verb{name, [add, &arguments, &unmarked](CLI::App& app) { add(app, arguments, unmarked); },
            [&arguments] { return Arguments(arguments); }};
  verb.check = [name, &arguments, &unmarked] {
    if (!unmarked.empty())
      throw CLI::ValidationError(name, "put -- before the command: -- " + unmarked[0]);
    if (arguments.command.empty()) throw CLI::ValidationError(name, "give a command: -- COMMAND");
  };
  return verb;
}

// All arguments that can be typed, and the values that were. An object must live, where it is,
// until the arguments are parsed.
class Typed {
 public:
  RunArguments run;
  LaunchArguments launch;

  Typed() {
    verbs_ = {simple_verb("list", add_list, list_),
              simple_verb("show", add_show, show_),
              simple_verb("verify", add_verify, verify_),
              simple_verb("prune", add_prune, prune_),
              simple_verb("inject", add_inject, inject_),
              starting_verb("run", add_run, run, unmarked_run_),
              simple_verb("jobs", add_jobs, jobs_),
              simple_verb("history", add_history, history_),
              simple_verb("export", add_export, exported_),
              starting_verb("launch", add_launch, launch, unmarked_launch_),
              simple_verb("checkpoint", add_checkpoint, checkpoint_),
              simple_verb("restart", add_restart, restart_),
              simple_verb("energy", add_energy, energy_),
              simple_verb("report", add_report, report_),
              simple_verb("predict", add_predict, predict_),
              simple_verb("plan", add_plan, plan_),
              simple_verb("simulate", add_simulate, simulate_),
              {"power", [this](CLI::App& app) { add_power(app); }, [this] { return power_verb(); }},
              {"study", [this](CLI::App& app) { study_options_.add(app); },
               [this] { return any_of(study_options_.chosen()); }}};
    verb("prune")->check = [this] { check_prune(prune_); };
    verb("inject")->check = [this] { check_inject(inject_); };
  }
  Typed(const Typed&) = delete;
  Typed& operator=(const Typed&) = delete;

  // Adds the verb of this name, or all verbs if it is none: the options of all take longer than
  // many a verb.
  void add_to(CLI::App& app, const std::string& name) {
    const Verb* const only = verb(name);
    for (const Verb& one : verbs_) {
      if (only == nullptr || only == &one) one.add(app);
    }
  }

  // Returns the arguments of the verb that was typed. Throws CLI::ParseError for a combination that
  // is not allowed.
  Arguments chosen(const CLI::App& app) {
    const Verb& typed = *verb(app.get_subcommands().front()->get_name());
    typed.check();
    return typed.chosen();
  }

 private:
  Verb* verb(const std::string& name) {
    const auto found = std::ranges::find(verbs_, name, &Verb::name);
    return found == verbs_.end() ? nullptr : &*found;
  }

  void add_power(CLI::App& app) {
    power_ = &power_options_.add(app);
    add_power_restore(*power_, power_restore_);
    add_power_watch(*power_, power_watch_);
  }

  Arguments power_verb() const {
    if (power_->got_subcommand("restore")) return power_restore_;
    if (power_->got_subcommand("watch")) return power_watch_;
    return any_of(power_options_.chosen());
  }

  template <typename Some>
  static Arguments any_of(const Some& some) {
    return std::visit([](const auto& which) { return Arguments(which); }, some);
  }

  std::vector<Verb> verbs_;
  ListArguments list_;
  ShowArguments show_;
  VerifyArguments verify_;
  PruneArguments prune_;
  InjectArguments inject_;
  JobsArguments jobs_;
  HistoryArguments history_;
  ExportArguments exported_;
  std::vector<std::string> unmarked_run_, unmarked_launch_;
  CheckpointArguments checkpoint_;
  RestartArguments restart_;
  EnergyArguments energy_;
  ReportArguments report_;
  PowerOptions power_options_;
  PowerRestoreArguments power_restore_;
  PowerWatchArguments power_watch_;
  StudyOptions study_options_;
  PredictArguments predict_;
  PlanArguments plan_;
  SimulateArguments simulate_;
  CLI::App* power_ = nullptr;
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

// Throws CLI::ParseError for a first word that should be an option and is none. The library would
// only report a missing verb.
void check_first_option(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty() || words[0].empty() || words[0][0] != '-') return;
  const std::string name = words[0].substr(0, words[0].find('='));
  if (app.get_option_no_throw(name) != nullptr) return;
  throw CLI::ValidationError(
      fmt::format("there is no option {} before the verb", config::quoted(name)));
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
  std::vector<std::string> words(argv + 1, argv + argc);
  const std::string verb = words.empty() ? "" : words[0];
  Typed typed;
  typed.add_to(app, verb);

  const bool is_run = verb == "run";
  const bool is_launch = verb == "launch";
  if (is_run) typed.run.command = take_command(words);
  if (is_launch) typed.launch.command = take_command(words);
  try {
    check_first_option(app, words);
    check_verb(app, words, 0);
    if (verb == "study" || verb == "power") check_verb(*app.get_subcommand(verb), words, 1);
    std::reverse(words.begin(), words.end());  // the order that the library expects
    app.parse(words);
    return typed.chosen(app);
  } catch (const CLI::ParseError& error) {
    if (app.exit(error) == 0) return kDone;
    return is_run || is_launch || verb == "restart" ? kCannotRun : kTrouble;
  }
}

}  // namespace diapause::cli
