#include "cli/study_options.hpp"

#include <fmt/format.h>

#include <initializer_list>

namespace diapause::cli {
namespace {

std::string study_footer(std::initializer_list<const char*> examples) {
  return fmt::format("Examples:\n  {}\n\nExit status:\n  0  done\n  3  wrong usage, an I/O error, or a run that failed",
                     fmt::join(examples, "\n  "));
}

void add_study_compress(CLI::App& study, StudyCompressArguments& arguments) {
  CLI::App& verb = *study.add_subcommand("compress", "Time, size, error, power and energy of compressing and writing");
  verb.add_option("fields", arguments.fields, "Files with type and shape, or of NumPy; else the built-in set")
      ->option_text("FILE:TYPE:SHAPE|FILE.npy ...");
  verb.add_option("-o,--output", arguments.output, "Where tables and pictures go")
      ->option_text("DIRECTORY")
      ->required();
  const auto add_list = [&](const char* name, std::vector<std::string>& values, const char* what) {
    verb.add_option(name, values, what)->delimiter(',')->option_text("LIST");
  };
  add_list("--codecs", arguments.codecs,
           "Of raw, shuffle+lz4, shuffle+zstd, lattice, zfp, sz3; else all that are there");
  add_list("--bounds", arguments.bounds, "Absolute errors of lossy codecs; else 1e-1,1e-2,1e-3,1e-4");
  add_list("--clocks", arguments.clocks, "Ratios of the base clock, if there is an actuator; else 0.4 to 1");
  verb.add_option("--actuator", arguments.actuator, "What sets the clock: none, cpufreq or emulated")
      ->check(CLI::IsMember({"none", "cpufreq", "emulated"}))
      ->option_text("NAME")
      ->capture_default_str();
  verb.add_option("--machine", arguments.machine, "Whose published power over clock stands in where none is measured")
      ->check(CLI::IsMember({"m510-broadwell", "c220g5-skylake"}))
      ->option_text("NAME")
      ->capture_default_str();
  verb.add_option("--seconds", arguments.seconds, "How long each step is repeated, at least")
      ->check(CLI::Range(0.0, 3600.0))
      ->option_text("S")
      ->capture_default_str();
  verb.add_option("--directory", arguments.directory, "Where the compressed data is written; else below the output")
      ->option_text("PATH");
  verb.footer(study_footer(
      {"diapause study compress -o study",
       "diapause study compress u.raw:float64:128x128x128 -o study --codecs lattice,zfp --actuator cpufreq"}));
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
}

// ---- studies of runs: their words go to the Python package as they are, which knows the defaults --------------------

struct RunsOption {
  const char *name, *value, *what;
};

constexpr RunsOption kOutput = {"-o,--output", "DIRECTORY",
                                "Where results, tables and pictures go; started again, it goes on from there"};
constexpr RunsOption kRepetitions = {"--repetitions", "N", "How often each run is done"};
constexpr RunsOption kLaunch = {"--launch", "COMMAND",
                                "Starts the ranks of a program, as \"srun -n {ranks}\"; else mpirun -n {ranks}"};
constexpr RunsOption kRanksPerNode = {"--ranks-per-node", "N",
                                      "Takes so many ranks for a node; else ranks that share memory are one"};
constexpr RunsOption kDirectory = {"--directory", "PATH",
                                   "The global directory of the checkpoints; else below the output"};
constexpr RunsOption kRanks = {"--ranks", "N", "How many ranks"};
constexpr RunsOption kRanksList = {"--ranks", "LIST", "How many ranks, one study for each"};
constexpr RunsOption kSize = {"--size", "MB", "What a rank protects"};

struct RunsStudy {
  const char *name, *what, *example;
  std::vector<RunsOption> options;
};

std::vector<RunsStudy> studies_of_runs() {
  return {
      {"levels",
       "Time, power and energy of multilevel checkpoints",
       "diapause study levels -o levels --launch \"srun -n {ranks}\" --ranks 64 --seconds 1076",
       {kLaunch,
        kRanks,
        kRanksPerNode,
        kSize,
        kDirectory,
        {"--application", "LIST", "Of heat and stream; else both"},
        {"--configuration", "NAME", "Only this one, as \"ckp(3,5,7,11)/e1\"; may be given again"},
        {"--seconds", "S", "About how long a run without checkpoints is to take"},
        {"--minute-s", "S", "Seconds of a minute of ckp(); else as many fit into a run as on the Cray XC40"}}},
      {"messages",
       "What checkpoints do to messages between ranks",
       "diapause study messages -o messages --launch \"srun -n {ranks}\" --ranks 2,16,64",
       {kLaunch,
        kRanksList,
        kRanksPerNode,
        kDirectory,
        {"--largest", "BYTES", "Of a message; else 4194304"},
        {"--seconds", "S", "About how long each size of message is measured"},
        {"--minute-s", "S", "Seconds of a minute of ckp(3,5,7,11); else a run has 22"}}},
      {"throttle",
       "Clocks while checkpoints are written, and where the time goes by system size",
       "diapause study throttle -o throttle --actuator cpufreq --medium local=/scratch --medium ip=/nfs/scratch",
       {{"--size", "MB", "What is written at once; else 1500"},
        {"--medium", "NAME=PATH", "Where to: local=, ip= or rdma= and a directory; may be given again"},
        {"--actuator", "NAME", "What sets the clock: none, cpufreq or emulated; else none"},
        {"--clocks", "LIST", "Ratios of the base clock; else six from 1 to 0.368"},
        {"--machine", "NAME", "Whose published power stands in where none is measured"},
        {"--seconds", "S", "How long each step is repeated, at least"}}},
      {"writes",
       "Checkpoints straight to the global directory, and behind the program",
       "diapause study writes -o writes --launch \"srun -n {ranks}\" --ranks 16,32,64 --size 1000 --disk /localscratch",
       {kLaunch,
        kRanksList,
        kRanksPerNode,
        kSize,
        kDirectory,
        {"--disk", "PATH", "A disk of each node, for the first tier on a disk; else below the output"},
        {"--actuator", "NAME", "What lowers the clock in background flushes: none, cpufreq or emulated; else none"},
        {"--clocks", "LIST", "Ratios of the base clock in background flushes; else 1,0.85,0.7,0.5"},
        {"--machine", "NAME", "Whose published power is what the model computes with"}}},
      {"failures",
       "Run times among injected failures, beside those that simulate predicts",
       "diapause study failures -o failures --mtbf process=6 --mtbf node=18",
       {kLaunch,
        kRanks,
        kRanksPerNode,
        kSize,
        kDirectory,
        {"--seconds", "S", "About how long a run without failures takes; else 12"},
        {"--interval-s", "S", "Seconds of work between checkpoints; else 1"},
        {"--mtbf", "CLASS=S", "Seconds between failures of the job, of class process or node; may be given again"}}},
      {"transparent",
       "Checkpoints of programs that know nothing of them, and the checkpoint-fill-time law",
       "diapause study transparent -o transparent --ranks 1,4,16 --size 100,1000",
       {kLaunch,
        kRanksList,
        {"--size", "LIST", "MB of a rank; else 64,256"},
        kDirectory,
        {"--seconds", "S", "About how long a run that is compared with one that was not launched takes"}}},
  };
}

void add_study_of_runs(CLI::App& app, const RunsStudy& study, StudyRunsArguments& arguments) {
  CLI::App& verb = *app.add_subcommand(study.name, study.what);
  arguments.name = study.name;
  const auto add = [&](const RunsOption& option) {
    const std::string names = option.name;
    const std::string word = names.substr(names.find("--"));
    const auto keep = [&arguments, word](const std::string& value) { arguments.words.push_back(word + "=" + value); };
    return verb.add_option_function<std::string>(option.name, keep, option.what)
        ->option_text(option.value)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->trigger_on_parse();
  };
  add(kOutput)->required();
  add(kRepetitions);
  for (const RunsOption& option : study.options) add(option);
  const auto dry_run = [&arguments] { arguments.words.emplace_back("--dry-run"); };
  verb.add_flag_callback("--dry-run", dry_run, "Says what would be run and how long that takes, and runs nothing");
  verb.footer(study_footer({study.example}));
}

}  // namespace

CLI::App& StudyOptions::add(CLI::App& app) {
  verb_ = app.add_subcommand("study", "A published study, done again here")->require_subcommand(1);
  verb_->footer(study_footer({"diapause study compress -o study", "diapause study levels -o levels --dry-run"}));
  add_study_compress(*verb_, compress_);
  add_study_encode(*verb_, encode_);
  for (const RunsStudy& study : studies_of_runs()) add_study_of_runs(*verb_, study, of_runs_[study.name]);
  return *verb_;
}

std::variant<StudyCompressArguments, StudyEncodeArguments, StudyRunsArguments> StudyOptions::chosen() const {
  if (verb_->got_subcommand("compress")) return compress_;
  if (verb_->got_subcommand("encode")) return encode_;
  for (const auto& [name, arguments] : of_runs_) {
    if (verb_->got_subcommand(name)) return arguments;
  }
  return {};
}

}  // namespace diapause::cli
