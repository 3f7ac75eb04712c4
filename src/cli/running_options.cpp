#include "cli/running_options.hpp"

#include "cli/verb_options.hpp"

namespace diapause::cli {
namespace {

constexpr const char* kJobExitCodes =
    "Exit status:\n"
    "  that of the command, as a shell gives it: 128 + N if it was ended by signal N\n"
    "  75   the job was stopped in time, by a signal or before the end of the allocation, and is "
    "to "
    "continue\n"
    "  125  the command could not be started or restarted, or the usage was wrong";

void add_intervals(CLI::App& verb, double& interval_s, int& level) {
  verb.add_option("--interval", interval_s,
                  "Take a checkpoint every S seconds [only when asked to]")
      ->option_text("S")
      ->check(within(0.0, 1e9));
  verb.add_option("--level", level, "Level of these checkpoints")
      ->option_text("N")
      ->check(within(1, 4))
      ->capture_default_str();
}

}  // namespace

void add_run(CLI::App& app, RunArguments& arguments, std::vector<std::string>& unmarked) {
  CLI::App& verb =
      *app.add_subcommand("run", "Starts a command, and starts it again when it fails");
  const double most_s = 1e9;
  verb.add_option("--restarts", arguments.restarts, "Start the command again at most N times")
      ->option_text("N")
      ->check(natural())
      ->capture_default_str();
  verb.add_option("--delay", arguments.delay_s, "Wait S seconds before each further start")
      ->option_text("S")
      ->check(within(0.0, most_s))
      ->capture_default_str();
  verb.add_option("--min-uptime", arguments.min_uptime_s,
                  "Do not start the command again if it fails within S seconds")
      ->option_text("S")
      ->check(within(0.0, most_s))
      ->capture_default_str();
  verb.add_option("--stall", arguments.stall_s,
                  "End the command and start it again if no ledger and no version of any job in "
                  "the tiers has changed\n"
                  "for S seconds; 0: never")
      ->option_text("S")
      ->check(within(0.0, most_s))
      ->capture_default_str();
  verb.add_option("--linger", arguments.linger_s,
                  "End a launcher (mpirun, srun, ...) S seconds after the last process that it has "
                  "started has ended;\n"
                  "0: never")
      ->option_text("S")
      ->check(within(0.0, most_s))
      ->capture_default_str();
  add_places(verb, arguments.places);
  verb.add_flag(
      "--finish", arguments.finish,
      "At exit status 0, finish the jobs of the command: remove what finish.keep does not keep");
  verb.add_option("command", unmarked, "Command to start, looked up in PATH")
      ->option_text("-- COMMAND [ARGUMENTS...]");
  verb.footer(
      "The command runs in a process group of its own. SIGINT, SIGTERM, SIGHUP and SIGQUIT are "
      "passed on to the group "
      "and\n"
      "end the restarts; SIGUSR1, SIGUSR2, SIGTSTP and SIGCONT are passed on. The remaining "
      "processes "
      "of a\n"
      "failed command are ended before the next start. DIAPAUSE_RUN_ATTEMPT is 0 in the first "
      "start, 1 in the second, "
      "and so on.\n"
      "A command that stopped in time, because of a signal or the end of the allocation, is not "
      "started again; under\n"
      "Slurm the job is queued again with scontrol requeue.\n\n" +
      footer({"diapause run -- mpiexec -n 64 ./heat",
              "diapause run --restarts 10 --delay 5 --min-uptime 30 -- srun ./heat"},
             "Exit status:\n"
             "  that of the command's last start, as a shell gives it: 128 + N if it was ended by "
             "signal N\n"
             "  75   the command stopped in time and is to continue in another allocation\n"
             "  125  the command could not be started, or the usage was wrong"));
}

void add_nodes(CLI::App& verb, NodeArguments& arguments) {
  const char* const kGroup = "Several nodes";
  auto* hosts = verb.add_option("--hosts", arguments.hosts,
                                "Nodes of the job, of which this machine is the first")
                    ->option_text("HOST,...")
                    ->delimiter(',')
                    ->group(kGroup);
  auto* file =
      verb.add_option("--host-file", arguments.host_file,
                      "File with a host on each line; what follows the first word is ignored")
          ->option_text("FILE")
          ->group(kGroup)
          ->excludes(hosts);
  verb.add_option("--emulated-nodes", arguments.emulated,
                  "Let N nodes, node0 and so on, be this machine: for tests and demonstrations")
      ->option_text("N")
      ->group(kGroup)
      ->check(within(1, 1000))
      ->excludes(hosts)
      ->excludes(file);
  verb.add_option("--remote-shell", arguments.remote_shell,
                  "Command that starts another on a host: SHELL HOST COMMAND")
      ->option_text("SHELL")
      ->group(kGroup)
      ->envname("DIAPAUSE_RUN_REMOTE_SHELL")
      ->capture_default_str();
  verb.add_option("--fan-out", arguments.fan_out, "How many nodes each node passes messages on to")
      ->option_text("N")
      ->group(kGroup)
      ->check(within(1, 10000))
      ->capture_default_str();
  verb.add_option(
          "--node-timeout", arguments.limit_s,
          "Seconds that a node may be silent while the job stands still; the checkpoint then fails")
      ->option_text("S")
      ->group(kGroup)
      ->check(within(0.1, 1e6))
      ->capture_default_str();
}

void add_launch(CLI::App& app, LaunchArguments& arguments, std::vector<std::string>& unmarked) {
  CLI::App& verb =
      *app.add_subcommand("launch", "Starts any command in such a way that it can be checkpointed");
  verb.add_option("-n,--name", arguments.name, "Name of the job")->option_text("NAME")->required();
  add_intervals(verb, arguments.interval_s, arguments.level);
  verb.add_flag(
      "--check", arguments.check,
      "Take no checkpoint, but say at each interval [every second] what would prevent one");
  verb.add_flag(
          "--continue", arguments.continues,
          "Go on from the newest version of the job, if there is one, and finish the job when "
          "the command\nends with status 0: for batch scripts that are submitted again")
      ->excludes("--check");
  verb.add_option("--files", arguments.files,
                  "Files that belong to the job although no process has them open: a file, a "
                  "directory with\nall below it, or a quoted glob; may be given again. A restart "
                  "makes them what they were")
      ->option_text("PATTERN")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_config(verb, arguments.config);
  add_nodes(verb, arguments.nodes);
  verb.add_option("command", unmarked, "Command to start, looked up in PATH")
      ->option_text("-- COMMAND [ARGUMENTS...]");
  verb.footer(
      "The job consists of the command and all processes that it starts. It ends with the command; "
      "the remaining\n"
      "processes are then ended.\n\n" +
      footer({"diapause launch -n simulation -- ./simulation input",
              "diapause launch -n simulation --interval 600 --level 4 -- ./simulation input",
              "diapause launch -n simulation --files '*.ener' --files out -- ./simulation input",
              "diapause launch -n simulation --check -- ./simulation input",
              "diapause run -- diapause launch -n simulation --continue -- ./simulation input",
              "diapause launch -n md --hosts a,b,c,d -- mpirun -n 4 ./md input"},
             kJobExitCodes));
}

void add_checkpoint(CLI::App& app, CheckpointArguments& arguments) {
  CLI::App& verb =
      *app.add_subcommand("checkpoint", "Takes a checkpoint of a launched job on this machine");
  verb.add_option("name", arguments.name, "Name of the job")->option_text("NAME")->required();
  verb.add_option(
          "--level", arguments.level,
          "Level of the checkpoint: 1 survives the loss of processes, 4 that of the machine")
      ->option_text("N")
      ->check(within(1, 4))
      ->capture_default_str();
  verb.add_flag("--check", arguments.check,
                "Only say whether one could be taken now, and what would prevent it");
  add_config(verb, arguments.config);
  verb.footer(
      footer({"diapause checkpoint simulation --level 4", "diapause checkpoint simulation --check"},
             kUsualExitCodes));
}

void add_restart(CLI::App& app, RestartArguments& arguments) {
  CLI::App& verb =
      *app.add_subcommand("restart", "Restarts a launched job from its newest sound version");
  verb.add_option("name", arguments.name, "Name of the job")->option_text("NAME")->required();
  verb.add_option("version", arguments.version, "Number of the version [the newest]")
      ->option_text("VERSION")
      ->check(natural());
  verb.add_flag("--mapped", arguments.mapped,
                "Let the job run before its memory is read, where that is allowed");
  add_intervals(verb, arguments.interval_s, arguments.level);
  add_config(verb, arguments.config);
  add_nodes(verb, arguments.nodes);
  verb.footer(footer({"diapause restart simulation", "diapause restart simulation 12",
                      "diapause restart md --hosts a,b,c,e"},
                     kJobExitCodes));
}

}  // namespace diapause::cli
