#include "cli/study_options.hpp"

#include <fmt/format.h>

#include <initializer_list>

#include "cli/verb_options.hpp"

namespace diapause::cli {
namespace {

std::string study_footer(std::initializer_list<const char*> examples) {
  return fmt::format(
      "Examples:\n  {}\n\nExit status:\n  0  done\n  3  wrong usage, an I/O error, or a run that "
      "failed",
      fmt::join(examples, "\n  "));
}

void add_study_compress(CLI::App& study, StudyCompressArguments& arguments) {
  CLI::App& verb = *study.add_subcommand(
      "compress", "Time, size, error, power and energy of compressing and writing");
  verb.add_option("fields", arguments.fields,
                  "Files with type and shape, or NumPy files [the built-in set]")
      ->option_text("FILE:TYPE:SHAPE|FILE.npy ...");
  verb.add_option("-o,--output", arguments.output, "Directory for tables and pictures")
      ->option_text("DIRECTORY")
      ->required();
  const auto add_list = [&](const char* name, std::vector<std::string>& values, const char* what) {
    verb.add_option(name, values, what)->delimiter(',')->option_text("LIST");
  };
  add_list("--codecs", arguments.codecs,
           "Some of raw, shuffle+lz4, shuffle+zstd, lattice, zfp, sz3 [all that this build has]");
  add_list("--bounds", arguments.bounds, "Absolute errors of lossy codecs [1e-1,1e-2,1e-3,1e-4]");
  add_list("--clocks", arguments.clocks,
           "Ratios of the base clock, if there is an actuator [seven from 0.4 to 1]");
  verb.add_option("--actuator", arguments.actuator,
                  "What sets the clock: none, cpufreq or emulated")
      ->check(CLI::IsMember({"none", "cpufreq", "emulated"}))
      ->option_text("NAME")
      ->capture_default_str();
  verb.add_option("--machine", arguments.machine,
                  "Machine whose published power over clock is used where none is measured")
      ->check(CLI::IsMember({"m510-broadwell", "c220g5-skylake"}))
      ->option_text("NAME")
      ->capture_default_str();
  verb.add_option("--seconds", arguments.seconds,
                  "Least number of seconds for which each step is repeated")
      ->check(within(0.0, 3600.0))
      ->option_text("S")
      ->capture_default_str();
  verb.add_option("--repetitions", arguments.repetitions,
                  "Least number of times that each step is repeated")
      ->check(within(1, 10000))
      ->option_text("N")
      ->capture_default_str();
  verb.add_option("--directory", arguments.directory,
                  "Directory to which compressed data is written [below the output]")
      ->option_text("PATH");
  verb.add_option("--dump-gb", arguments.dump_gb,
                  "GB of the fields that are dumped, with and without the rule of lower clocks")
      ->check(within(1e-3, 1e9))
      ->option_text("GB")
      ->capture_default_str();
  verb.add_flag("--dry-run", arguments.is_dry_run,
                "Says what would be measured and how long that takes, and runs nothing");
  verb.footer(study_footer({"diapause study compress -o study",
                            "diapause study compress u.raw:float64:128x128x128 -o study --codecs "
                            "lattice,zfp --actuator cpufreq"}));
}

void add_study_encode(CLI::App& study, StudyEncodeArguments& arguments) {
  CLI::App& verb = *study.add_subcommand("encode", "Started by study compress")->group("");
  verb.add_option("file", arguments.file)->required();
  verb.add_option("--type", arguments.type)->required();
  verb.add_option("--dims", arguments.dims)->delimiter(',')->required();
  verb.add_option("--codecs", arguments.codecs)->delimiter(',')->required();
  verb.add_option("--bounds", arguments.bounds)->delimiter(',')->required();
  verb.add_option("--clocks", arguments.clocks)->delimiter(',')->required();
  verb.add_option("--actuator", arguments.actuator)->required();
  verb.add_option("--directory", arguments.directory)->required();
  verb.add_option("--seconds", arguments.seconds)->required();
  verb.add_option("--repetitions", arguments.repetitions);
  verb.add_option("--dump-bytes", arguments.dump_bytes);
}

// ---- studies of runs: the Python package parses the options
// ---------------------------------------------------------

// `standard` is the default as the help shows it. The Python package has the defaults themselves; a
// test compares both.
struct RunsOption {
  const char *name, *value, *what, *standard = "";
};

constexpr RunsOption with_default(RunsOption option, const char* standard) {
  option.standard = standard;
  return option;
}

constexpr RunsOption kOutput = {
    "-o,--output", "DIRECTORY",
    "Directory for results, tables and pictures; a second start continues from what it has"};
constexpr RunsOption kRepetitions = {"--repetitions", "N", "Number of times that each run is done"};
constexpr RunsOption kLaunch = {
    "--launch", "COMMAND",
    "Command that starts the ranks of a program, such as \"srun -n {ranks}\"", "mpirun -n {ranks}"};
constexpr RunsOption kRanksPerNode = {"--ranks-per-node", "N",
                                      "Make N ranks a node [ranks that share memory are a node]"};
constexpr RunsOption kDirectory = {"--directory", "PATH",
                                   "Global directory of the checkpoints [below the output]"};
constexpr RunsOption kRanks = {"--ranks", "N", "Number of ranks"};
constexpr RunsOption kRanksList = {"--ranks", "LIST", "Numbers of ranks, one study for each"};
constexpr RunsOption kSize = {"--size", "MB", "Data that a rank protects, in MB"};

struct RunsStudy {
  const char *name, *what, *example;
  std::vector<RunsOption> options;
  const char* repetitions = "3";
};

RunsStudy levels_study() {
  return {"levels",
          "Time, power and energy of multilevel checkpoints",
          "diapause study levels -o levels --launch \"srun -n {ranks}\" --ranks 64 --seconds 1076",
          {kLaunch,
           with_default(kRanks, "4"),
           kRanksPerNode,
           with_default(kSize, "32"),
           kDirectory,
           {"--application", "LIST", "Some of heat and stream", "heat,stream"},
           {"--configuration", "NAME",
            "Only this one, such as \"ckp(3,5,7,11)/e1\"; may be given more than once [all]"},
           {"--seconds", "S", "Approximate time of a run without checkpoints", "60"},
           {"--minute-s", "S",
            "Seconds of a minute of ckp() [as many minutes in a run as on the Cray XC40]"}}};
}

RunsStudy flush_study() {
  return {
      "flush",
      "Lower clocks during background flushes: a model for each profile, and runs where a clock "
      "can be set",
      "diapause study flush -o flush --actuator cpufreq --flush-s 20 --interval-s 300",
      {kLaunch,
       with_default(kRanks, "2"),
       kRanksPerNode,
       with_default(kSize, "64"),
       kDirectory,
       {"--actuator", "NAME",
        "What lowers the clock in the runs: none (no runs), cpufreq or emulated", "none"},
       {"--clocks", "LIST", "Ratios of the base clock in the runs", "1,0.85,0.7,0.5"},
       {"--flush-s", "S", "Seconds that a flush of the model takes at the base clock", "10"},
       {"--interval-s", "S",
        "Seconds from the beginning of a flush to the next checkpoint, in the model", "60"},
       {"--phi", "SHARE",
        "Share of a flush's time that scales with the clock; the default is from a published "
        "slowdown",
        "0.527"},
       {"--psi", "SHARE",
        "Share of the program's time that does, where it computes on the slowed cores", "1"}}};
}

std::vector<RunsStudy> studies_of_runs() {
  return {
      levels_study(),
      {"messages",
       "Effect of checkpoints on messages between ranks",
       "diapause study messages -o messages --launch \"srun -n {ranks}\" --ranks 2,16,64",
       {kLaunch,
        with_default(kRanksList, "4"),
        kRanksPerNode,
        kDirectory,
        {"--largest", "BYTES", "Size of the largest message", "4194304"},
        {"--seconds", "S", "Approximate time for which each size of message is measured", "0.5"},
        {"--minute-s", "S", "Seconds of a minute of ckp(3,5,7,11) [22 minutes in a run]"}},
       "5"},
      {"throttle",
       "Lower clocks while checkpoints are written, and how time is spent by system size",
       "diapause study throttle -o throttle --actuator cpufreq --medium local=/scratch --medium "
       "ip=/nfs/scratch",
       {{"--size", "MB", "Data that is written at once, in MB", "1500"},
        {"--medium", "NAME=PATH",
         "Medium: local=, ip= or rdma= and a directory; may be given more than once [the output]"},
        {"--actuator", "NAME", "What sets the clock: none, cpufreq or emulated", "none"},
        {"--clocks", "LIST", "Ratios of the base clock", "1,0.874,0.747,0.621,0.495,0.368"},
        {"--machine", "NAME", "Machine whose published power is used where none is measured",
         "m510-broadwell"},
        {"--seconds", "S", "Least number of seconds for which each step is repeated", "2"}}},
      {"writes",
       "Checkpoints directly to the global directory, and in the background",
       "diapause study writes -o writes --launch \"srun -n {ranks}\" --ranks 16,32,64 --size 1000 "
       "--disk /localscratch",
       {kLaunch,
        with_default(kRanksList, "1,2,4"),
        kRanksPerNode,
        with_default(kSize, "256"),
        kDirectory,
        {"--disk", "PATH",
         "Directory on a disk of each node, for the local tier [below the output]"},
        {"--actuator", "NAME",
         "What lowers the clock in background flushes: none, cpufreq or emulated", "none"},
        {"--clocks", "LIST", "Ratios of the base clock in background flushes", "1,0.85,0.7,0.5"},
        {"--machine", "NAME", "Machine whose published power the model uses", "m510-broadwell"}}},
      flush_study(),
      {"failures",
       "Run times with injected failures, compared with those that simulate predicts",
       "diapause study failures -o failures --mtbf process=6 --mtbf node=18",
       {kLaunch,
        with_default(kRanks, "4"),
        {"--ranks-per-node", "N", "Make N ranks a node", "1"},
        with_default(kSize, "2"),
        kDirectory,
        {"--seconds", "S", "Approximate time of a run without failures", "12"},
        {"--interval-s", "S", "Seconds of work between checkpoints", "1"},
        {"--mtbf", "CLASS=S",
         "Mean seconds between failures of the job, of class process or node; may be given more "
         "than once"}},
       "20"},
      {"transparent",
       "Checkpoints of unmodified programs, and the checkpoint-fill-time law",
       "diapause study transparent -o transparent --ranks 1,2,4,8,16 --size 100,1000",
       {kLaunch,
        with_default(kRanksList, "1,2,4"),
        {"--size", "LIST", "Data of a rank, in MB", "64,256"},
        {"--nodes", "LIST", "Emulated nodes of the job in weak scaling", "1,2,4"},
        kDirectory,
        {"--seconds", "S", "Approximate time of the runs whose overhead is measured", "20"},
        {"--program", "NAME=COMMAND",
         "Program of a published table to run as well; may be given more than once [none]"}}},
  };
}

void add_study_of_runs(CLI::App& app, const RunsStudy& study, StudyRunsArguments& arguments) {
  CLI::App& verb = *app.add_subcommand(study.name, study.what);
  arguments.name = study.name;
  const auto add = [&](const RunsOption& option) {
    const std::string names = option.name;
    const std::string word = names.substr(names.find("--"));
    const auto keep = [&arguments, word](const std::string& value) {
      arguments.words.push_back(word + "=" + value);
    };
    return verb.add_option_function<std::string>(option.name, keep, option.what)
        ->option_text(option.value)
        ->default_str(option.standard)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->trigger_on_parse();
  };
  add(kOutput)->required();
  add(with_default(kRepetitions, study.repetitions));
  for (const RunsOption& option : study.options) add(option);
  const auto dry_run = [&arguments] { arguments.words.emplace_back("--dry-run"); };
  verb.add_flag_callback("--dry-run", dry_run,
                         "Say what would be run and how long that takes, and run nothing");
  verb.footer(study_footer({study.example}));
}

}  // namespace

CLI::App& StudyOptions::add(CLI::App& app) {
  verb_ = app.add_subcommand("study", "Repeats a published study on this machine")
              ->require_subcommand(1);
  verb_->footer(study_footer(
      {"diapause study compress -o study", "diapause study levels -o levels --dry-run"}));
  add_study_compress(*verb_, compress_);
  add_study_encode(*verb_, encode_);
  for (const RunsStudy& study : studies_of_runs())
    add_study_of_runs(*verb_, study, of_runs_[study.name]);
  return *verb_;
}

std::variant<StudyCompressArguments, StudyEncodeArguments, StudyRunsArguments>
StudyOptions::chosen() const {
  if (verb_->got_subcommand("compress")) return compress_;
  if (verb_->got_subcommand("encode")) return encode_;
  for (const auto& [name, arguments] : of_runs_) {
    if (verb_->got_subcommand(name)) return arguments;
  }
  return {};
}

}  // namespace diapause::cli
