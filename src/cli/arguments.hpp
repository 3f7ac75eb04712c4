// The command line as values. Only arguments.cpp uses the library that parses it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/exit_codes.hpp"
#include "cli/plan_arguments.hpp"
#include "cli/power_arguments.hpp"
#include "cli/study_arguments.hpp"

namespace diapause::cli {

// The places to search for checkpoints. Those that are not set come from the configuration.
struct Places {
  std::string config;
  std::optional<std::string> memory, local, global;
};

struct ListArguments {
  Places places;
  std::string job;  // empty for all
  bool json = false;
};

struct ShowArguments {
  Places places;
  std::string job;
  std::optional<std::uint64_t> version;  // empty for the newest
  bool json = false;
};

struct VerifyArguments {
  Places places;
  std::string job;  // empty for all
  std::optional<std::uint64_t> version;
  bool json = false;
};

struct PruneArguments {
  Places places;
  std::string job;  // empty for all
  std::optional<std::uint64_t> keep;
  std::vector<std::uint64_t> versions;
  bool all = false;
  bool unfinished = false;
  bool dry_run = false;
};

struct InjectArguments {
  Places places;
  std::string file;
  std::optional<std::uint64_t> offset, truncate;
  std::optional<std::uint32_t> bit;
  std::optional<std::string> overwrite;
  bool force = false;
};

struct RunArguments {
  Places places;  // the places in which progress is looked for
  std::uint64_t restarts = 3;
  double delay_s = 0;
  double min_uptime_s = 0;
  double stall_s = 0;  // seconds without progress after which the command is ended; 0: never
  // Seconds that a launcher may live on when nothing of its job does; 0: unlimited.
  double linger_s = 30;
  bool finish = false;
  std::vector<std::string> command;
};

struct ExportArguments {
  Places places;
  std::string job;
  std::optional<std::uint64_t> version;  // nullopt: the newest that is complete
  std::string to;                        // directory
};

// The nodes of a job that was not written for checkpoints.
struct NodeArguments {
  std::vector<std::string> hosts;
  std::string host_file;
  std::uint32_t emulated = 0;
  std::string remote_shell = "ssh";
  std::uint32_t fan_out = 16;
  double limit_s = 60;
};

// Arguments for a job that was not written for checkpoints.
struct LaunchArguments {
  std::string config;
  std::string name;
  double interval_s = 0;
  int level = 1;
  bool check = false;
  bool continues = false;  // from the newest version, if there is one
  std::vector<std::string> files;
  NodeArguments nodes;
  std::vector<std::string> command;
};

struct CheckpointArguments {
  std::string config;
  std::string name;
  int level = 1;
  bool check = false;
};

struct RestartArguments {
  std::string config;
  std::string name;
  std::optional<std::uint64_t> version;  // empty for the newest
  bool mapped = false;                   // memory comes while the job runs
  double interval_s = 0;
  int level = 1;
  NodeArguments nodes;
};

struct EnergyArguments {
  Places places;
  std::string job;
  std::vector<std::string> baselines;  // ledgers or jobs
  std::string part;                    // part of the machine; empty for the total
  bool json = false;
  bool csv = false;
};

struct PredictArguments {
  std::string machine, app;
  std::string schedule = "ckp(3,5,7,11)";
  std::string bytes;  // the text that was typed; empty for the published size
  bool json = false;
};

struct JobsArguments {
  Places places;
  std::string job;  // empty for all
  bool json = false;
};

struct HistoryArguments {
  Places places;
  std::string job;  // a job or a ledger
  bool follow = false;
};

struct ReportArguments {
  Places places;
  std::string job;  // a job or a ledger
  std::string output;
  std::vector<std::string> compare;  // jobs or ledgers
  std::vector<std::string> traces;
  std::string pictures;  // a directory; empty for none
};

struct PowerRestoreArguments {
  std::string config;
  std::string state;  // empty for the configured one
};

// Arguments of the verb that only the governor starts.
struct PowerWatchArguments {
  std::string state, owner;
};

using Arguments =
    std::variant<ListArguments, ShowArguments, VerifyArguments, PruneArguments, InjectArguments,
                 RunArguments, ExportArguments, LaunchArguments, CheckpointArguments,
                 RestartArguments, EnergyArguments, JobsArguments, HistoryArguments,
                 ReportArguments, PowerArguments, PowerRecordArguments, PowerAlignArguments,
                 PowerCalibrateArguments, PowerRestoreArguments, PowerWatchArguments,
                 StudyCompressArguments, StudyEncodeArguments, StudyRunsArguments, PlanArguments,
                 SimulateArguments, PredictArguments>;

// Returns the arguments. If there is nothing to do, returns the exit status: help was asked for and
// printed, or the arguments are wrong and that was reported.
std::variant<Arguments, int> parse_arguments(int argc, char** argv);

}  // namespace diapause::cli
