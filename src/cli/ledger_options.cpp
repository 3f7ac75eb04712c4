#include "cli/ledger_options.hpp"

#include "cli/verb_options.hpp"

namespace diapause::cli {

void add_energy(CLI::App& app, EnergyArguments& arguments) {
  CLI::App& verb = *app.add_subcommand(
      "energy", "Who used the energy of a job: the program, and phases of checkpoints");
  add_job_or_ledger(verb, arguments.job);
  CLI::Option* const baseline = verb.add_option("--baseline", arguments.baselines,
                                                "A ledger, or a job, to compare with: in percent "
                                                "of it; may be given again for more runs of it")
                                    ->option_text("JOB|LEDGER")
                                    ->expected(1)
                                    ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  verb.add_option("--domain", arguments.part,
                  "Of this part alone, and not of the total: node, cpu, dram or gpu")
      ->check(CLI::IsMember({"node", "cpu", "dram", "gpu"}))
      ->option_text("NAME");
  CLI::Option* const json = verb.add_flag("--json", arguments.json, "JSON instead of tables");
  verb.add_flag("--csv", arguments.csv, "CSV instead: a line for each phase of each version")
      ->excludes(json)
      ->excludes(baseline);
  add_config(verb, arguments.places.config);
  add_global(verb, arguments.places.global);
  verb.footer(footer(
      {"diapause energy heat", "diapause energy heat --baseline heat_plain --json",
       "diapause energy runs/heat-0a1b2c3d/ledger.jsonl", "diapause energy heat --csv > heat.csv"},
      kUsualExitCodes));
}

void add_predict(CLI::App& app, PredictArguments& arguments) {
  CLI::App& verb = *app.add_subcommand(
      "predict", "Predicts runtime, power and energy of a program with checkpoints");
  verb.add_option("--machine", arguments.machine,
                  "Profile with the costs of checkpoints: a name or a file")
      ->option_text("PROFILE")
      ->required();
  verb.add_option("--app", arguments.app, "Program whose costs are in the profile: heat, stream")
      ->option_text("NAME")
      ->required();
  verb.add_option("--schedule", arguments.schedule,
                  "Minutes between checkpoints of levels 1 to 4, or none")
      ->option_text("CKP(A,B,C,D)")
      ->capture_default_str();
  verb.add_option("--bytes", arguments.bytes, "Size of a checkpoint on a node [as published]")
      ->option_text("SIZE")
      ->check(a_size());
  verb.add_flag("--json", arguments.json, "JSON instead of a table");
  verb.footer(footer({"diapause predict --machine theta-xc40 --app heat --schedule 'ckp(3,5,7,11)'",
                      "diapause predict --machine mira-bgq --app stream --bytes 6GB --json"},
                     kUsualExitCodes));
}

void add_history(CLI::App& app, HistoryArguments& arguments) {
  CLI::App& verb = *app.add_subcommand(
      "history", "Lists checkpoints, restarts and failures of a job, and what they cost");
  add_job_or_ledger(verb, arguments.job);
  verb.add_flag("--follow", arguments.follow,
                "Show new lines as they are written, until the job closes");
  add_config(verb, arguments.places.config);
  add_global(verb, arguments.places.global);
  verb.footer(footer({"diapause history heat", "diapause history heat --follow",
                      "diapause history runs/heat-0a1b2c3d/ledger.jsonl"},
                     kUsualExitCodes));
}

void add_report(CLI::App& app, ReportArguments& arguments) {
  CLI::App& verb = *app.add_subcommand(
      "report", "Writes one HTML page about time, failures and energy of a job");
  add_job_or_ledger(verb, arguments.job);
  verb.add_option("-o,--output", arguments.output, "File to write")
      ->option_text("FILE")
      ->required();
  add_repeated(verb, "--compare", arguments.compare,
               "Job or ledger to compare with the first one; may be given more than once")
      ->option_text("JOB|LEDGER");
  add_repeated(
      verb, "--trace", arguments.traces,
      "File that `diapause power record` wrote on a node meanwhile; may be given more than once")
      ->option_text("FILE");
  verb.add_option("--pictures", arguments.pictures,
                  "Also write each picture as a PNG file into this directory")
      ->option_text("DIRECTORY");
  add_config(verb, arguments.places.config);
  add_global(verb, arguments.places.global);
  verb.footer(
      footer({"diapause report heat -o heat.html",
              "diapause report heat -o heat.html --compare heat_plain --trace node17.jsonl"},
             kUsualExitCodes));
}

}  // namespace diapause::cli
