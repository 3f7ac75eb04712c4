#include "cli/arguments.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "cli/plan_options.hpp"
#include "cli/power_options.hpp"
#include "cli/study_options.hpp"
#include "config/keys.hpp"
#include "config/settings.hpp"
#include "sys/process.hpp"

namespace diapause::cli {
namespace {

constexpr const char* kExitCodes =
    "Exit status:\n"
    "  0  done\n"
    "  3  wrong usage, an I/O error, nothing of that name, or a job that is running";

constexpr const char* kVerifyExitCodes =
    "Exit status:\n"
    "  0  nothing is damaged, and the newest version of every job can be restored\n"
    "  1  something is damaged, but the newest version can be restored\n"
    "  2  the newest version of a job cannot be restored from what can be reached from here\n"
    "  3  wrong usage, an I/O error, or nothing of that name";

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

// Returns the examples, one per line, and the meaning of the verb's exit status.
std::string footer(std::initializer_list<const char*> examples, const char* exit_codes) {
  std::string text = "Examples:\n";
  for (const char* example : examples) text += std::string("  ") + example + "\n";
  return text + "\n" + exit_codes;
}

// Accepts natural numbers only. The library would let other numbers wrap around.
CLI::Validator natural() {
  const auto check = [](const std::string& text) -> std::string {
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, number);
    const bool is_sound = parsed.ec == std::errc() && parsed.ptr == end;
    return is_sound ? "" : fmt::format("'{}' is not a number from 0 to {}", text, UINT64_MAX);
  };
  return CLI::Validator(check, "");
}

// Returns the settings that a job has without a configuration.
config::Settings default_settings() {
  return config::parse_settings("", "", {}, sys::user_id()).value_or(config::Settings{});
}

void add_config(CLI::App& verb, std::string& config) {
  verb.add_option("--config", config, "Configuration file [$DIAPAUSE_CONFIG, or none]")->option_text("FILE");
}

void add_global(CLI::App& verb, std::optional<std::string>& global) {
  verb.add_option("--global", global, "Directory of the global tier, instead of the configured one")
      ->option_text("PATH")
      ->default_str(default_settings().global_path);
}

void add_places(CLI::App& verb, Places& places) {
  const config::Settings settings = default_settings();
  add_config(verb, places.config);
  verb.add_option("--memory", places.memory, "Directory of the memory tier, instead of the configured one")
      ->option_text("PATH")
      ->default_str(settings.memory_path);
  verb.add_option("--local", places.local, "Directory of the local tier, instead of the configured one")
      ->option_text("PATH")
      ->default_str(settings.local_path.empty() ? "none" : settings.local_path);
  add_global(verb, places.global);
}

CLI::Option* add_job(CLI::App& verb, std::string& job) {
  return verb.add_option("job", job, "Name of a job, or NAME-XXXXXXXX if the name is not unique")->option_text("JOB");
}

void add_list(CLI::App& app, ListArguments& arguments) {
  CLI::App& verb = *app.add_subcommand("list", "Lists all versions in all tiers that can be reached from here");
  add_job(verb, arguments.job);
  verb.add_flag("--json", arguments.json, "JSON instead of a table");
  add_places(verb, arguments.places);
  verb.footer(footer({"diapause list", "diapause list heat --global /lustre/project/checkpoints --json"}, kExitCodes));
}

void add_show(CLI::App& app, ShowArguments& arguments) {
  CLI::App& verb = *app.add_subcommand("show", "Shows one version in detail: ranks, nodes, partners, groups, regions");
  add_job(verb, arguments.job)->required();
  verb.add_option("version", arguments.version, "Number of the version [the newest]")
      ->option_text("VERSION")
      ->check(natural());
  verb.add_flag("--json", arguments.json, "JSON instead of tables");
  add_places(verb, arguments.places);
  verb.footer(footer({"diapause show heat", "diapause show heat 1200 --json"}, kExitCodes));
}

void add_verify(CLI::App& app, VerifyArguments& arguments) {
  CLI::App& verb =
      *app.add_subcommand("verify", "Reads and checks every byte, and says what could be restored after which loss");
  add_job(verb, arguments.job);
  verb.add_option("version", arguments.version, "Number of the version [all]")
      ->option_text("VERSION")
      ->check(natural());
  verb.add_flag("--json", arguments.json, "JSON instead of text");
  add_places(verb, arguments.places);
  verb.footer(footer({"diapause verify", "diapause verify heat 1200"}, kVerifyExitCodes));
}

void add_prune(CLI::App& app, PruneArguments& arguments) {
  constexpr const char* kWhat = "What to remove (one of the first three, --unfinished, or both)";
  CLI::App& verb = *app.add_subcommand("prune", "Removes versions of a job that is not running");
  add_job(verb, arguments.job);
  verb.add_option(
          "--keep", arguments.keep,
          "Remove versions older than the newest N that can be restored from here, which are read and checked first")
      ->option_text("N")
      ->check(natural())
      ->group(kWhat);
  verb.add_option("--version", arguments.versions, "Remove the version of this number; may be given more than once")
      ->option_text("V")
      ->check(natural())
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(kWhat);
  verb.add_flag("--all", arguments.all, "Remove every version of the job, which must be named")->group(kWhat);
  verb.add_flag("--unfinished", arguments.unfinished, "Remove checkpoints that were not completed")->group(kWhat);
  verb.add_flag("--dry-run", arguments.dry_run, "Only say what would be removed");
  add_places(verb, arguments.places);
  verb.footer(footer(
      {"diapause prune heat --keep 2 --dry-run", "diapause prune heat --version 1200", "diapause prune --unfinished"},
      kExitCodes));
}

void check_prune(const PruneArguments& arguments) {
  const int ways = int{arguments.keep.has_value()} + int{!arguments.versions.empty()} + int{arguments.all};
  if (ways > 1) throw CLI::ValidationError("prune", "--keep, --version and --all exclude each other");
  if (arguments.keep == std::uint64_t{0}) {
    throw CLI::ValidationError("prune", "--keep 0 would keep nothing: prune JOB --all removes every version of a job");
  }
  if (ways == 0 && !arguments.unfinished) {
    throw CLI::ValidationError("prune", "say what to remove: --keep N, --version V, --all or --unfinished");
  }
  if (!arguments.versions.empty() && arguments.job.empty()) {
    throw CLI::ValidationError("prune", "--version needs a job");
  }
  if (arguments.all && arguments.job.empty()) {
    throw CLI::ValidationError("prune",
                               "--all removes every version of a job: name it, as in diapause prune JOB --all");
  }
}

void add_inject(CLI::App& app, InjectArguments& arguments) {
  constexpr const char* kHow = "How to damage it (one of)";
  CLI::App& verb = *app.add_subcommand("inject", "Damages a file on purpose, to test that the damage is found");
  verb.add_option("file", arguments.file, "Regular file below one of the tiers")->option_text("FILE")->required();
  verb.add_option("--bit", arguments.bit, "Flip this bit (0: least significant) of the byte at the offset")
      ->option_text("B")
      ->check(CLI::Range(0u, 7u))
      ->group(kHow);
  verb.add_option("--overwrite", arguments.overwrite, "Write these bytes (hexadecimal digits) at the offset")
      ->option_text("BYTES")
      ->group(kHow);
  verb.add_option("--truncate", arguments.truncate, "Cut the file to this length")->option_text("N")->group(kHow);
  verb.add_option("--offset", arguments.offset, "Position in bytes; only --overwrite has a default, which is 0")
      ->option_text("N");
  verb.add_flag("--force", arguments.force, "Accept any regular file, also outside of the tiers");
  add_places(verb, arguments.places);
  verb.footer(
      footer({"diapause inject /dev/shm/diapause-1000/heat-0a1b2c3d/node0/v12-i0-.../r0.img --offset 5000 --bit 3",
              "diapause inject r0.img --truncate 4096 --force", "diapause inject r0.img --overwrite 00ff00ff"},
             kExitCodes));
}

void check_inject(const InjectArguments& arguments) {
  const int ways =
      int{arguments.bit.has_value()} + int{arguments.overwrite.has_value()} + int{arguments.truncate.has_value()};
  if (ways != 1) throw CLI::ValidationError("inject", "exactly one of --bit, --overwrite and --truncate is wanted");
  if (arguments.bit && !arguments.offset) throw CLI::ValidationError("inject", "--bit needs an --offset");
  if (arguments.truncate && arguments.offset) throw CLI::ValidationError("inject", "--truncate takes no --offset");
}

// `unmarked` receives words in the place of the command without "--" before it.
void add_run(CLI::App& app, RunArguments& arguments, std::vector<std::string>& unmarked) {
  CLI::App& verb = *app.add_subcommand("run", "Starts a command, and starts it again when it fails");
  const double most_s = 1e9;
  verb.add_option("--restarts", arguments.restarts, "Start the command again at most N times")
      ->option_text("N")
      ->check(natural())
      ->capture_default_str();
  verb.add_option("--delay", arguments.delay_s, "Wait S seconds before each further start")
      ->option_text("S")
      ->check(CLI::Range(0.0, most_s))
      ->capture_default_str();
  verb.add_option("--min-uptime", arguments.min_uptime_s, "Do not start the command again if it fails within S seconds")
      ->option_text("S")
      ->check(CLI::Range(0.0, most_s))
      ->capture_default_str();
  verb.add_option("--stall", arguments.stall_s,
                  "End the command and start it again if no ledger and no version of any job in the tiers has changed\n"
                  "for S seconds; 0: never")
      ->option_text("S")
      ->check(CLI::Range(0.0, most_s))
      ->capture_default_str();
  verb.add_option("--linger", arguments.linger_s,
                  "End a launcher (mpirun, srun, ...) S seconds after the last process that it has started has ended;\n"
                  "0: never")
      ->option_text("S")
      ->check(CLI::Range(0.0, most_s))
      ->capture_default_str();
  add_places(verb, arguments.places);
  verb.add_flag("--finish", arguments.finish,
                "At exit status 0, finish the jobs of the command: remove what finish.keep does not keep");
  verb.add_option("command", unmarked, "Command to start, looked up in PATH")->option_text("-- COMMAND [ARGUMENTS...]");
  verb.footer(
      "The command runs in a process group of its own. SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to the group "
      "and\n"
      "end the restarts; SIGUSR1, SIGUSR2, SIGTSTP and SIGCONT are passed on. The remaining processes "
      "of a\n"
      "failed command are ended before the next start. DIAPAUSE_RUN_ATTEMPT is 0 in the first start, 1 in the second, "
      "and so on.\n"
      "A command that stopped in time, because of a signal or the end of the allocation, is not started again; under\n"
      "Slurm the job is queued again with scontrol requeue.\n\n" +
      footer({"diapause run -- mpiexec -n 64 ./heat",
              "diapause run --restarts 10 --delay 5 --min-uptime 30 -- srun ./heat"},
             "Exit status:\n"
             "  that of the command's last start, as a shell gives it: 128 + N if it was ended by signal N\n"
             "  75   the command stopped in time and is to continue in another allocation\n"
             "  125  the command could not be started, or the usage was wrong"));
}

void add_jobs(CLI::App& app, JobsArguments& arguments) {
  CLI::App& verb =
      *app.add_subcommand("jobs", "Lists what each job has left in the tiers, how old it is, and which jobs are gone");
  add_job(verb, arguments.job);
  verb.add_flag("--json", arguments.json, "JSON instead of a table");
  add_places(verb, arguments.places);
  verb.footer(footer({"diapause jobs", "diapause jobs heat --json"}, kExitCodes));
}

void add_export(CLI::App& app, ExportArguments& arguments) {
  CLI::App& verb = *app.add_subcommand("export", "Verifies a version, and writes its regions as arrays, and its files");
  add_job(verb, arguments.job)->required();
  verb.add_option("version", arguments.version, "Number of the version [the newest that is complete]")
      ->option_text("VERSION")
      ->check(natural());
  verb.add_option("--to", arguments.to,
                  "Directory for one NumPy file for each region, or a file of HDF5 or VTK with all regions")
      ->option_text("DIRECTORY|FILE.h5|FILE.vti")
      ->required();
  add_places(verb, arguments.places);
  verb.footer(footer({"diapause export heat --to heat-arrays", "diapause export heat 1200 --to heat.h5"}, kExitCodes));
}

constexpr const char* kJobExitCodes =
    "Exit status:\n"
    "  that of the command, as a shell gives it: 128 + N if it was ended by signal N\n"
    "  125  the command could not be started or restarted, or the usage was wrong";

void add_intervals(CLI::App& verb, double& interval_s, int& level) {
  verb.add_option("--interval", interval_s, "Take a checkpoint every S seconds [only when asked to]")
      ->option_text("S")
      ->check(CLI::Range(0.0, 1e9));
  verb.add_option("--level", level, "Level of these checkpoints")
      ->option_text("N")
      ->check(CLI::Range(1, 4))
      ->capture_default_str();
}

void add_nodes(CLI::App& verb, NodeArguments& arguments) {
  const char* const kGroup = "Several nodes";
  auto* hosts = verb.add_option("--hosts", arguments.hosts, "Nodes of the job, of which this machine is the first")
                    ->option_text("HOST,...")
                    ->delimiter(',')
                    ->group(kGroup);
  auto* file = verb.add_option("--host-file", arguments.host_file,
                               "File with a host on each line; what follows the first word is ignored")
                   ->option_text("FILE")
                   ->group(kGroup)
                   ->excludes(hosts);
  verb.add_option("--emulated-nodes", arguments.emulated,
                  "Let N nodes, node0 and so on, be this machine: for tests and demonstrations")
      ->option_text("N")
      ->group(kGroup)
      ->check(CLI::Range(1, 1000))
      ->excludes(hosts)
      ->excludes(file);
  verb.add_option("--remote-shell", arguments.remote_shell, "Command that starts another on a host: SHELL HOST COMMAND")
      ->option_text("SHELL")
      ->group(kGroup)
      ->envname("DIAPAUSE_RUN_REMOTE_SHELL")
      ->capture_default_str();
  verb.add_option("--fan-out", arguments.fan_out, "How many nodes each node passes messages on to")
      ->option_text("N")
      ->group(kGroup)
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  verb.add_option("--node-timeout", arguments.limit_s,
                  "Seconds that a node may be silent while the job stands still; the checkpoint then fails")
      ->option_text("S")
      ->group(kGroup)
      ->check(CLI::Range(0.1, 1e6))
      ->capture_default_str();
}

void add_launch(CLI::App& app, LaunchArguments& arguments, std::vector<std::string>& unmarked) {
  CLI::App& verb = *app.add_subcommand("launch", "Starts any command in such a way that it can be checkpointed");
  verb.add_option("-n,--name", arguments.name, "Name of the job")->option_text("NAME")->required();
  add_intervals(verb, arguments.interval_s, arguments.level);
  verb.add_flag("--check", arguments.check,
                "Take no checkpoint, but say at each interval [every second] what would prevent one");
  add_config(verb, arguments.config);
  add_nodes(verb, arguments.nodes);
  verb.add_option("command", unmarked, "Command to start, looked up in PATH")->option_text("-- COMMAND [ARGUMENTS...]");
  verb.footer(
      "The job consists of the command and all processes that it starts. It ends with the command; the remaining\n"
      "processes are then ended.\n\n" +
      footer({"diapause launch -n simulation -- ./simulation input",
              "diapause launch -n simulation --interval 600 --level 4 -- ./simulation input",
              "diapause launch -n simulation --check -- ./simulation input",
              "diapause launch -n md --hosts a,b,c,d -- mpirun -n 4 ./md input"},
             kJobExitCodes));
}

void add_checkpoint(CLI::App& app, CheckpointArguments& arguments) {
  CLI::App& verb = *app.add_subcommand("checkpoint", "Takes a checkpoint of a launched job on this machine");
  verb.add_option("name", arguments.name, "Name of the job")->option_text("NAME")->required();
  verb.add_option("--level", arguments.level,
                  "Level of the checkpoint: 1 survives the loss of processes, 4 that of the machine")
      ->option_text("N")
      ->check(CLI::Range(1, 4))
      ->capture_default_str();
  verb.add_flag("--check", arguments.check, "Only say whether one could be taken now, and what would prevent it");
  add_config(verb, arguments.config);
  verb.footer(
      footer({"diapause checkpoint simulation --level 4", "diapause checkpoint simulation --check"}, kExitCodes));
}

void add_restart(CLI::App& app, RestartArguments& arguments) {
  CLI::App& verb = *app.add_subcommand("restart", "Restarts a launched job from its newest sound version");
  verb.add_option("name", arguments.name, "Name of the job")->option_text("NAME")->required();
  verb.add_option("version", arguments.version, "Number of the version [the newest]")
      ->option_text("VERSION")
      ->check(natural());
  add_intervals(verb, arguments.interval_s, arguments.level);
  add_config(verb, arguments.config);
  add_nodes(verb, arguments.nodes);
  verb.footer(
      footer({"diapause restart simulation", "diapause restart simulation 12", "diapause restart md --hosts a,b,c,e"},
             kJobExitCodes));
}

void add_job_or_ledger(CLI::App& verb, std::string& job) {
  verb.add_option("job", job, "Name of a job, or path of a ledger")->option_text("JOB|LEDGER")->required();
}

void add_energy(CLI::App& app, EnergyArguments& arguments) {
  CLI::App& verb =
      *app.add_subcommand("energy", "Who used the energy of a job: the program, and phases of checkpoints");
  add_job_or_ledger(verb, arguments.job);
  CLI::Option* const baseline =
      verb.add_option("--baseline", arguments.baselines,
                      "A ledger, or a job, to compare with: in percent of it; may be given again for more runs of it")
          ->option_text("JOB|LEDGER")
          ->expected(1)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  verb.add_option("--domain", arguments.part, "Of this part alone, and not of the total: node, cpu, dram or gpu")
      ->check(CLI::IsMember({"node", "cpu", "dram", "gpu"}))
      ->option_text("NAME");
  CLI::Option* const json = verb.add_flag("--json", arguments.json, "JSON instead of tables");
  verb.add_flag("--csv", arguments.csv, "CSV instead: a line for each phase of each version")
      ->excludes(json)
      ->excludes(baseline);
  add_config(verb, arguments.places.config);
  add_global(verb, arguments.places.global);
  verb.footer(footer({"diapause energy heat", "diapause energy heat --baseline heat_plain --json",
                      "diapause energy runs/heat-0a1b2c3d/ledger.jsonl", "diapause energy heat --csv > heat.csv"},
                     kExitCodes));
}

void add_predict(CLI::App& app, PredictArguments& arguments) {
  CLI::App& verb = *app.add_subcommand("predict", "Predicts runtime, power and energy of a program with checkpoints");
  verb.add_option("--machine", arguments.machine, "Profile with the costs of checkpoints: a name or a file")
      ->option_text("PROFILE")
      ->required();
  verb.add_option("--app", arguments.app, "Program whose costs are in the profile: heat, stream")
      ->option_text("NAME")
      ->required();
  verb.add_option("--schedule", arguments.schedule, "Minutes between checkpoints of levels 1 to 4, or none")
      ->option_text("CKP(A,B,C,D)")
      ->capture_default_str();
  verb.add_option("--bytes", arguments.bytes, "Size of a checkpoint on a node [as published]")->option_text("SIZE");
  verb.add_flag("--json", arguments.json, "JSON instead of a table");
  verb.footer(footer({"diapause predict --machine theta-xc40 --app heat --schedule 'ckp(3,5,7,11)'",
                      "diapause predict --machine mira-bgq --app stream --bytes 6GB --json"},
                     kExitCodes));
}

void add_history(CLI::App& app, HistoryArguments& arguments) {
  CLI::App& verb =
      *app.add_subcommand("history", "Lists checkpoints, restarts and failures of a job, and what they cost");
  add_job_or_ledger(verb, arguments.job);
  verb.add_flag("--follow", arguments.follow, "Show new lines as they are written, until the job closes");
  add_config(verb, arguments.places.config);
  add_global(verb, arguments.places.global);
  verb.footer(footer(
      {"diapause history heat", "diapause history heat --follow", "diapause history runs/heat-0a1b2c3d/ledger.jsonl"},
      kExitCodes));
}

// Adds an option that takes one value and may be repeated.
CLI::Option* add_repeated(CLI::App& verb, const std::string& name, std::vector<std::string>& values, const char* what) {
  return verb.add_option(name, values, what)->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_report(CLI::App& app, ReportArguments& arguments) {
  CLI::App& verb = *app.add_subcommand("report", "Writes one HTML page about time, failures and energy of a job");
  add_job_or_ledger(verb, arguments.job);
  verb.add_option("-o,--output", arguments.output, "File to write")->option_text("FILE")->required();
  add_repeated(verb, "--compare", arguments.compare,
               "Job or ledger to compare with the first one; may be given more than once")
      ->option_text("JOB|LEDGER");
  add_repeated(verb, "--trace", arguments.traces,
               "File that `diapause power record` wrote on a node meanwhile; may be given more than once")
      ->option_text("FILE");
  verb.add_option("--pictures", arguments.pictures, "Also write each picture as a PNG file into this directory")
      ->option_text("DIRECTORY");
  add_config(verb, arguments.places.config);
  add_global(verb, arguments.places.global);
  verb.footer(footer({"diapause report heat -o heat.html",
                      "diapause report heat -o heat.html --compare heat_plain --trace node17.jsonl"},
                     kExitCodes));
}

void add_power_restore(CLI::App& power, PowerRestoreArguments& arguments) {
  CLI::App& verb = *power.add_subcommand("restore", "Restores clocks and limits that jobs have left changed");
  verb.add_option("--state", arguments.state, "Directory of the governor, instead of the configured one")
      ->option_text("PATH");
  add_config(verb, arguments.config);
  verb.footer(
      footer({"diapause power restore", "diapause power restore --state /dev/shm/diapause-power-0"}, kExitCodes));
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
  std::vector<std::string> unmarked_launch;  // the same for `launch`
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
      if (!unmarked.empty()) throw CLI::ValidationError("run", "put -- before the command: -- " + unmarked[0]);
      if (run.command.empty()) throw CLI::ValidationError("run", "give a command: -- COMMAND");
    }
    if (app.got_subcommand("launch")) {
      if (!unmarked_launch.empty()) {
        throw CLI::ValidationError("launch", "put -- before the command: -- " + unmarked_launch[0]);
      }
      if (launch.command.empty()) throw CLI::ValidationError("launch", "give a command: -- COMMAND");
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
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
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
  const std::string typed =
      fmt::format("{}", fmt::join(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(place) + 1, " "));
  const std::string nearest = config::did_you_mean(words[place], names);
  throw CLI::ValidationError(
      fmt::format("there is no verb {}{} The verbs are {}.", config::quoted(typed), nearest, fmt::join(names, ", ")));
}

}  // namespace

std::variant<Arguments, int> parse_arguments(int argc, char** argv) {
  CLI::App app("Looks after the checkpoints of programs, and after the programs.", "diapause");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("diapause ") + DIAPAUSE_CLI_VERSION);
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return fmt::format("diapause: {}\nSee diapause --help, and --help after a verb.\n", error.what());
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
