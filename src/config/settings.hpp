// All settings with their defaults. docs/configuration.md describes them for users; a test compares
// the two.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace diapause::config {

enum class TierKind { memory, local, global };

// The strategies for copying data out of the program's memory; docs/configuration.md compares them.
enum class CaptureStrategy { automatic, copy, copy_on_write, incremental };
std::string_view capture_strategy_name(CaptureStrategy strategy);  // "copy-on-write"

// Says when a level is due in snapshot(): after so many seconds or so many calls. 0 means never.
struct Interval {
  double seconds = 0;
  std::uint64_t calls = 0;
};

// Into how many files the images of all ranks are written in the global tier.
struct FileCount {
  enum class Kind { per_rank, automatic, fixed };  // `automatic` is one file for each node
  Kind kind = Kind::per_rank;
  std::uint32_t count = 0;  // for `fixed`
};

// Says how a checkpoint of level 4 gets to the global tier.
enum class GlobalMode {
  staged,  // it is copied from the image on the node
  direct,  // it is written from the program's memory, without an image on the node
  mpi_io   // like `direct`, by collective MPI writes into shared files
};

// Lossless compression of regions: none, shuffle + LZ4, shuffle + zstd, or whichever of these
// serves CodecGoal best.
enum class CodecMethod { none, lz4, zstd, automatic };

// The cost that the choice of the method `automatic` minimizes.
enum class CodecGoal { time, energy };

// The settings of compression on the way to the global tier (docs/compression.md).
struct CodecSettings {
  CodecMethod method = CodecMethod::none;
  CodecGoal goal = CodecGoal::time;  // used with CodecMethod::automatic
  std::uint32_t zstd_level = 1;
  std::uint32_t threads = 1;        // threads of each process that compresses
  std::uint32_t anchor_every = 10;  // one version in so many in the global tier is exact; 1 = all
};

struct LevelSettings {
  TierKind tier = TierKind::memory;  // levels 1..3: memory or local; level 4: global
  std::uint32_t keep = 2;            // versions kept at this level or a higher one
  Interval interval;
};

struct CaptureSettings {
  CaptureStrategy strategy = CaptureStrategy::automatic;
  std::uint32_t threads = 0;  // threads that copy; 0 = as many as this rank has cores
  // Share of the blocks found unchanged whose checksum is verified in every capture.
  double audit_percent = 1;
  // Directories of files whose pages transparent checkpoints below level 4 do not store.
  std::vector<std::string> referenced_files = {"/usr", "/lib", "/lib64", "/opt"};
};

// Bit flips injected on purpose into protected memory, as in the published experiments; `/eN` in a
// schedule sets the bit.
struct FlipSettings {
  std::optional<std::uint32_t> bit;  // bit of the element; none = no injection
  double every_s = 10;
  std::uint32_t count = 1;  // flips each time
  std::uint64_t limit = 0;  // flips in total; 0 = no limit
  std::string region;       // name of the region; empty = any
  std::uint64_t seed = 1;
};

// Says when and why the program is asked to stop.
struct DeadlineSettings {
  // Names of signals, such as "SIGTERM", that are handled as requests to stop.
  std::vector<std::string> signals;
  std::uint64_t at_unix_s = 0;  // end of the allocation; 0 = unknown
  double in_s = 0;              // the same, counted from open; 0 = unknown
  double grace_s = 30;          // between such a signal and the kill
  // Time that the program itself needs between its last checkpoint and its end.
  double margin_s = 10;
};

// The thread that does the work behind the capture: the call itself, a thread of each node's first
// rank, or each node's last rank.
enum class AsyncMode { off, thread, rank };

// The remains of a job that the program has finished: nothing, the newest version of level 4, or
// everything, as after a close.
enum class FinishKeep { nothing, last, all };

// What becomes of the directories that a finished job has on its nodes.
enum class FinishDirectories { keep, remove };

// The action of a checkpoint when no more versions may be in flight.
enum class WhenFull { wait, skip };

// The work behind the capture, in the background.
struct AsyncSettings {
  AsyncMode mode = AsyncMode::thread;
  std::uint32_t nice = 10;           // niceness of the engine's thread
  std::optional<std::uint32_t> cpu;  // processor that the thread runs on; none = any
  double flush_mib_s = 0;            // limit of a node's writes to the global tier; 0 = no limit
  std::uint32_t in_flight = 2;       // captured versions that wait for the engine
  std::uint64_t in_flight_mib = 0;   // the same, in the memory of a node; 0 = no limit
  WhenFull when_full = WhenFull::wait;
};

// Says which meters measure the energy of a node (docs/energy.md).
struct EnergySettings {
  std::vector<std::string> meters = {"auto"};  // names of meters, or {"off"}
  std::uint32_t period_ms = 100;               // between two samples
  std::string profile = "generic";  // profile of the model: the name of a built-in one, or a file
  double tdp_w = 0;                 // for this machine's processors; 0 = as in the profile
  std::string stream;               // a CSV file that an external meter writes; empty = none
  double stream_offset_s = 0;       // added to the file's times to give local time
  std::string trace;                // a recorded trace to replay; empty = none
  std::string root;                 // prefix of /sys, /proc and /dev
};

// The quantity that `schedule = "auto"` minimizes: the time of the run, its energy, or its energy
// within a bound on the time.
enum class ScheduleGoal { time, energy, mixed };

struct AutoSchedule {
  bool is_on = false;
  ScheduleGoal goal = ScheduleGoal::time;
  double bound_percent = 2;  // mixed: how much longer than the shortest run it may take
};

// Mean times between the failures that the job meets, in seconds; 0 means unknown.
struct FailureSettings {
  double node_mtbf_s = 0;  // mean time between failures of a single node
  // The times for the whole job, by the level that such failures need; [0] is unused.
  std::array<double, 5> mtbf_s{};
};

// Says which phases of a checkpoint run slower to save energy: none, all at a fixed ratio of the
// base clock, or those that were measured to save energy of the node.
enum class ThrottlePolicy { off, fixed, measured };

// The means by which phases are slowed.
enum class ActuatorKind { automatic, cpufreq, powercap, uclamp, dry_run, emulated };

struct GovernorSettings {
  ThrottlePolicy policy = ThrottlePolicy::off;
  ActuatorKind actuator = ActuatorKind::automatic;
  double ratio_compress = 0.875;     // a ratio of the base clock
  double ratio_write = 0.85;         // a ratio of the base clock
  double max_slowdown_percent = 15;  // greatest slowdown of a phase, with ThrottlePolicy::measured
  std::string state_path;            // default /dev/shm/diapause-power-<uid>
  // The command that restores the settings of the machine if the job dies.
  std::string watchdog = "diapause";
};

struct Settings {
  std::string memory_path;  // default /dev/shm/diapause-<uid>
  std::string local_path;   // empty = there is no local tier
  // Relative to the working directory; the engine makes it absolute.
  std::string global_path = "diapause";
  FileCount global_files;
  GlobalMode global_mode = GlobalMode::staged;
  // 0 = nodes are what MPI_COMM_TYPE_SHARED gives; else the size of emulated nodes.
  std::uint32_t ranks_per_node = 0;
  std::string node_name;                // default: host name, with emulated nodes "node<i>"
  std::vector<std::string> node_names;  // names of emulated nodes, in order
  std::array<LevelSettings, 5> levels;  // [1] to [4]; [0] is unused
  std::uint32_t group_nodes = 4;        // n of level 3
  std::uint32_t parity = 1;             // m of level 3
  AutoSchedule auto_schedule;
  FailureSettings failures;
  FinishKeep finish_keep = FinishKeep::nothing;
  FinishDirectories finish_directories = FinishDirectories::keep;
  double lock_wait_s = 60;  // so long it waits for an earlier run of this job to release its locks
  CaptureSettings capture;
  CodecSettings codec;
  FlipSettings flips;
  DeadlineSettings deadline;
  AsyncSettings async;
  EnergySettings energy;
  GovernorSettings governor;
  std::string source;  // file that the settings came from; empty = defaults and environment
  // Variables that begin with DIAPAUSE_ and are no keys. They have no effect.
  std::vector<std::string> unknown_variables;

  LevelSettings& level(int number) { return levels[static_cast<std::size_t>(number)]; }
  const LevelSettings& level(int number) const { return levels[static_cast<std::size_t>(number)]; }
};

// The environment variables as pairs of name and value.
using Environment = std::vector<std::pair<std::string, std::string>>;
// Returns the value of a variable; empty if there is none.
std::string value_in(const Environment& environment, std::string_view name);

Settings default_settings(std::uint32_t uid);

// Reads `text`, the TOML of the file `path`, which is named in messages; empty text and path mean
// that there is no file. Environment variables DIAPAUSE_<SECTION>_<KEY> override the file. Under
// Slurm, the allocation's data replace what is not set in [deadline]. Returns Code::config with
// file, line and key, or the variable, and what is allowed.
Result<Settings> parse_settings(const std::string& text, const std::string& path,
                                const Environment& environment, std::uint32_t uid);

// Reads "auto", "ckp(3,5,7,11)" or "ckp(3,5,7,11)/e1" into the settings: the intervals of the
// levels in minutes of `minute_s` seconds each (0 = the level is never due), and the bit to flip.
// Returns Code::config with what is wrong in the text.
Status apply_schedule(const std::string& text, double minute_s, Settings& settings);

}  // namespace diapause::config
