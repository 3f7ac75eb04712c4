#include "cli/plan_options.hpp"

#include "cli/verb_options.hpp"

namespace diapause::cli {
namespace {

constexpr const char* kPlanExitCodes =
    "Exit status:\n"
    "  0  done\n"
    "  3  wrong usage, an I/O error, or nothing of that name";

CLI::Option* add_words(CLI::App& verb, const char* name, std::vector<std::string>& values,
                       const char* what) {
  return verb.add_option(name, values, what)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_job_options(CLI::App& verb, JobOptions& job) {
  constexpr const char* kJob = "The job";
  verb.add_option("--nodes", job.nodes, "Number of nodes [as measured, or 1]")
      ->option_text("N")
      ->check(within(1u, 100'000'000u))
      ->group(kJob);
  verb.add_option("--ranks", job.ranks, "Number of ranks [one on each node]")
      ->option_text("N")
      ->check(within(1u, 2'000'000'000u))
      ->group(kJob);
  verb.add_option("--bytes-per-rank", job.bytes_per_rank,
                  "Protected bytes of a rank: 2GiB, 500MB [as measured]")
      ->option_text("SIZE")
      ->check(a_size())
      ->group(kJob);
  verb.add_option("--from", job.from,
                  "Job or ledger whose measurements are used for everything that no option gives")
      ->option_text("JOB|LEDGER")
      ->group(kJob);
  verb.add_option("--levels", job.levels, "Levels that it takes [1,2,3,4]")
      ->delimiter(',')
      ->option_text("LIST")
      ->check(within(1, 5))
      ->group(kJob);
  add_words(verb, "--level", job.level,
            "Times of a level: 4:blocked=2s,behind=5min,restart=10min,down=1min")
      ->option_text("N:KEY=TIME,...")
      ->group(kJob);
  verb.add_option("--slowed", job.slowed,
                  "Share of its speed that the program loses to background work")
      ->option_text("SHARE")
      ->check(within(0.0, 0.99))
      ->capture_default_str()
      ->group(kJob);
  verb.add_flag("--sync", job.sync, "The program waits until a checkpoint holds")->group(kJob);
  verb.add_option("--group-nodes", job.group_nodes, "Number of nodes in a group of level 3")
      ->option_text("N")
      ->check(within(2u, 255u))
      ->capture_default_str()
      ->group(kJob);
  verb.add_option("--parity", job.parity, "Number of nodes of a group that may be lost")
      ->option_text("N")
      ->check(within(1u, 254u))
      ->capture_default_str()
      ->group(kJob);
}

void add_machine_options(CLI::App& verb, JobOptions& job) {
  constexpr const char* kMachine = "The machine";
  verb.add_option("--machine", job.machine, "Profile of the machine: a name or a file")
      ->option_text("PROFILE")
      ->capture_default_str()
      ->group(kMachine);
  add_words(verb, "--rate", job.rates,
            "Rate: memory or network of a node, or storage of all nodes: storage=210000")
      ->option_text("NAME=MB_S")
      ->group(kMachine);
  add_words(verb, "--watts", job.watts,
            "Power of a node: compute, checkpoint, restart, idle, or behind (which is added)")
      ->option_text("NAME=W")
      ->group(kMachine);
  verb.add_option("--node-mtbf", job.node_mtbf, "Mean time between failures of one node: 15y, 200d")
      ->option_text("TIME")
      ->check(a_time())
      ->group(kMachine);
  add_words(verb, "--mtbf", job.mtbf,
            "Mean time between failures of the job, by class: process, node, nodes, system, site")
      ->option_text("CLASS=TIME")
      ->group(kMachine);
  verb.add_option("--config", job.config, "Configuration file [$DIAPAUSE_CONFIG, or none]")
      ->option_text("FILE");
  verb.add_option("--global", job.global,
                  "Directory of the global tier, instead of the configured one")
      ->option_text("PATH");
}

void add_run_options(CLI::App& verb, SimulateArguments& arguments) {
  constexpr const char* kRun = "The run";
  verb.add_option("--work", arguments.work, "Useful work after which the run ends: 30d")
      ->option_text("TIME")
      ->check(a_time())
      ->group(kRun);
  verb.add_option("--horizon", arguments.horizon,
                  "Time after which the run ends [a year, if there is no --work]")
      ->option_text("TIME")
      ->check(a_time())
      ->group(kRun);
  CLI::Option* const interval =
      verb.add_option("--interval", arguments.interval,
                      "Work between two checkpoints [the optimum of `plan`]")
          ->option_text("TIME")
          ->check(a_time())
          ->group(kRun);
  verb.add_option("--every", arguments.every,
                  "Number of checkpoints of each level of which one is of the next level: 3,2,4")
      ->delimiter(',')
      ->option_text("LIST")
      ->check(within(1, 1'000'000'000))
      ->needs(interval)
      ->group(kRun);
  verb.add_option("--goal", arguments.goal, "Optimum that is taken: time or energy")
      ->check(CLI::IsMember({"time", "energy"}))
      ->excludes(interval)
      ->option_text("GOAL")
      ->capture_default_str()
      ->group(kRun);
  verb.add_option("--replicas", arguments.replicas, "Number of runs, each with other failures")
      ->option_text("N")
      ->check(within(1u, 1'000'000u))
      ->capture_default_str()
      ->group(kRun);
  verb.add_option("--seed", arguments.seed, "The same seed gives the same runs")
      ->option_text("N")
      ->check(natural())
      ->capture_default_str()
      ->group(kRun);
  verb.add_option("--threads", arguments.threads,
                  "Number of runs at a time [the number of processors]")
      ->option_text("N")
      ->check(within(1u, 4096u))
      ->group(kRun);
}

void add_failure_options(CLI::App& verb, SimulateArguments& arguments) {
  constexpr const char* kFailures = "Failures and other events";
  verb.add_option("--law", arguments.law,
                  "Times to failure: exponential, weibull:SHAPE or lognormal:SHAPE")
      ->option_text("LAW")
      ->capture_default_str()
      ->group(kFailures);
  CLI::Option* const trace =
      verb.add_option("--trace", arguments.trace,
                      "Recorded failures, which are repeated, in place of a law")
          ->option_text("FILE")
          ->group(kFailures);
  verb.add_option("--cabinet", arguments.cabinet_nodes,
                  "Number of consecutive nodes that a failure of class `nodes` takes [nodes that "
                  "level 3 survives]")
      ->option_text("N")
      ->check(within(1u, 1'000'000u))
      ->group(kFailures);
  verb.add_option("--power-domain", arguments.power_domain,
                  "Failures of power domains: their number of consecutive nodes, and the mean time "
                  "between failures of any domain of the job")
      ->option_text("N:TIME")
      ->excludes(trace)
      ->group(kFailures);
  verb.add_option("--spares", arguments.spares, "Number of nodes that replace lost ones [no limit]")
      ->option_text("N")
      ->check(within(0u, UINT32_MAX))
      ->group(kFailures);
  verb.add_option("--repair", arguments.repair, "Time until a lost node can be used again")
      ->option_text("TIME")
      ->check(a_time())
      ->group(kFailures);
  verb.add_flag("--shrink", arguments.shrink,
                "Without a spare node, continue with fewer nodes instead of waiting")
      ->group(kFailures);
  verb.add_option("--allocation", arguments.allocation,
                  "Time after which the job must stop [no limit]")
      ->option_text("TIME")
      ->check(a_time())
      ->group(kFailures);
  verb.add_option("--queue", arguments.queue,
                  "Time that the job then waits for the next allocation")
      ->option_text("TIME")
      ->check(a_time())
      ->group(kFailures);
  verb.add_option("--throttle", arguments.throttle,
                  "Effect of lower clocks in checkpoints on time and power, as factors")
      ->option_text("TIME:POWER")
      ->group(kFailures);
  verb.add_option("--others", arguments.others,
                  "Bursts of other jobs on the storage: mean time between them, mean length, share")
      ->option_text("QUIET:BURST:SHARE")
      ->group(kFailures);
  verb.get_option("--repair")->needs(verb.get_option("--spares"));
  // The library would put what a flag needs in the place of a value into the help.
  verb.get_option("--shrink")->needs(verb.get_option("--spares"))->option_text(" ");
  verb.get_option("--queue")->needs(verb.get_option("--allocation"));
}

// Accepts names of files with one of these endings.
CLI::Validator named(std::vector<std::string> endings) {
  const auto check = [endings](const std::string& name) -> std::string {
    std::string all;
    for (const std::string& ending : endings) {
      if (CLI::detail::to_lower(name).ends_with(ending)) return "";
      all += all.empty() ? ending : " or " + ending;
    }
    return "'" + name + "' is not the name of a file that ends in " + all;
  };
  return CLI::Validator(check, "");
}

CLI::Option* add_plot(CLI::App& verb, std::string& plot, const char* what) {
  return verb.add_option("--plot", plot, what)->option_text("FILE")->check(named({".svg", ".png"}));
}

// Refuses what would be ignored of `plan`.
void check_plan(const CLI::App& verb, const PlanArguments& arguments) {
  const auto refuse = [&](const char* name, const std::string& why) {
    if (verb.count(name) > 0) throw CLI::ValidationError(name, why);
  };
  if (!arguments.fill_time.empty()) {
    for (const CLI::Option* const option : verb.get_options()) {
      const std::string name = option->get_name();
      if (name != "--fill-time" && name != "--json" && name != "--help")
        refuse(name.c_str(), "--fill-time does not use it");
    }
  }
  if (!arguments.sizes.empty()) {
    for (const char* const name : {"--law", "--trace", "--bound"})
      refuse(name, "--sizes does not use it");
  }
  if (arguments.played.law == "exponential" && arguments.played.trace.empty()) {
    for (const char* const name : {"--horizon", "--replicas", "--seed"})
      refuse(name, "it is for runs with failures by --law or --trace: give one of these");
  }
}

}  // namespace

void add_plan(CLI::App& app, PlanArguments& arguments) {
  CLI::App& verb =
      *app.add_subcommand("plan", "Computes how often to take which level, and what that costs");
  add_job_options(verb, arguments.job);
  add_machine_options(verb, arguments.job);
  verb.add_option("--bound", arguments.bound_percent,
                  "How much longer than the shortest time the mixed schedule may take")
      ->option_text("PERCENT")
      ->check(within(0.0, 1000.0))
      ->capture_default_str();
  constexpr const char* kByRuns = "By simulation";
  verb.add_option("--law", arguments.played.law,
                  "Times to failure: weibull:SHAPE or lognormal:SHAPE")
      ->option_text("LAW")
      ->group(kByRuns);
  verb.add_option("--trace", arguments.played.trace,
                  "Recorded failures, which are repeated, in place of a law")
      ->option_text("FILE")
      ->group(kByRuns);
  verb.add_option("--horizon", arguments.played.horizon, "Length of a run [a year]")
      ->option_text("TIME")
      ->check(a_time())
      ->group(kByRuns);
  verb.add_option("--replicas", arguments.played.replicas,
                  "Number of runs, each with other failures")
      ->option_text("N")
      ->check(within(2u, 1'000'000u))
      ->capture_default_str()
      ->group(kByRuns);
  verb.add_option("--seed", arguments.played.seed, "The same seed gives the same runs")
      ->option_text("N")
      ->check(natural())
      ->capture_default_str()
      ->group(kByRuns);
  verb.add_option("--sizes", arguments.sizes,
                  "Print the shares of time on these numbers of nodes, at the optimum of each")
      ->delimiter(',')
      ->option_text("LIST")
      ->check(within(1, 100'000'000));
  verb.add_option("--fill-time", arguments.fill_time,
                  "Print the least time to write MEMORY, or USED percent of it if that is given, "
                  "to STORAGE (a size, "
                  "or nodes x "
                  "devices of each) made of DEVICEs of MB_S")
      ->delimiter(',')
      ->expected(4, 5)
      ->option_text("MEMORY,STORAGE,DEVICE,MB_S,USED");
  verb.add_flag("--json", arguments.json, "JSON instead of tables");
  add_plot(verb, arguments.plot, "Write a picture, and its numbers as JSON beside it");
  verb.callback([&verb, &arguments] { check_plan(verb, arguments); });
  verb.footer(
      std::string(
          "Examples:\n"
          "  diapause plan --nodes 4096 --bytes-per-rank 16GiB --rate storage=200000 --node-mtbf "
          "10y\n"
          "  diapause plan --from heat --mtbf node=2d --json\n"
          "  diapause plan --levels 4 --level 4:blocked=15min --sync --node-mtbf 15y --sizes "
          "1024,8192,65536\n"
          "  diapause plan --fill-time 205TB,10PB,2TB,100\n"
          "  diapause plan --fill-time 205TB,75x64,2TB,100,40\n\n") +
      kPlanExitCodes);
}

void add_simulate(CLI::App& app, SimulateArguments& arguments) {
  CLI::App& verb = *app.add_subcommand("simulate", "Simulates a job with failures, many times");
  add_job_options(verb, arguments.job);
  add_machine_options(verb, arguments.job);
  add_run_options(verb, arguments);
  add_failure_options(verb, arguments);
  verb.add_option("--events", arguments.events,
                  "Write all events of the first run, as .csv or .json")
      ->option_text("FILE")
      ->check(named({".csv", ".json"}));
  verb.add_flag("--json", arguments.json, "JSON instead of tables");
  add_plot(verb, arguments.plot,
           "Write the time line of the first run as a picture, and its numbers as JSON beside it");
  verb.footer(
      std::string(
          "Examples:\n"
          "  diapause simulate --nodes 4096 --bytes-per-rank 16GiB --node-mtbf 10y --law "
          "weibull:0.7\n"
          "  diapause simulate --from heat --trace failures.csv --work 30d --plot run.svg\n\n") +
      kPlanExitCodes);
}

}  // namespace diapause::cli
