// What can be configured, with its defaults. docs/configuration.md says the same for users; a test compares the two.
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

// How bytes leave the program's memory; docs/configuration.md says what each is good for.
enum class CaptureStrategy { automatic, copy, copy_on_write, incremental };
std::string_view capture_strategy_name(CaptureStrategy strategy);  // "copy-on-write"

// When a level is due in snapshot(): after so many seconds, or so many calls; 0 = never.
struct Interval {
  double seconds = 0;
  std::uint64_t calls = 0;
};

// How many files the images of all ranks make in the global tier.
struct FileCount {
  enum class Kind { per_rank, automatic, fixed };  // automatic: a file per node
  Kind kind = Kind::per_rank;
  std::uint32_t count = 0;  // fixed
};

// How a checkpoint of level 4 gets to the global tier.
enum class GlobalMode {
  staged,  // from the image on the node
  direct,  // from the program's memory, and no image is left on the node
  mpi_io   // the same, by collective writes of MPI into shared files
};

// How regions are compressed without loss: shuffle + LZ4, shuffle + zstd, or whichever saves time, if one does.
enum class CodecMethod { none, lz4, zstd, automatic };

// What it is to save.
enum class CodecGoal { time, energy };

// On the way to the global tier; docs/compression.md.
struct CodecSettings {
  CodecMethod method = CodecMethod::none;
  CodecGoal goal = CodecGoal::time;  // automatic
  std::uint32_t zstd_level = 1;
  std::uint32_t threads = 1;        // of a process that compresses
  std::uint32_t anchor_every = 10;  // of so many versions in the global tier one is exact; 1 = all are
};

struct LevelSettings {
  TierKind tier = TierKind::memory;  // levels 1..3: memory or local; level 4: global
  std::uint32_t keep = 2;            // versions kept at this level or a higher one
  Interval interval;
};

struct CaptureSettings {
  CaptureStrategy strategy = CaptureStrategy::automatic;
  std::uint32_t threads = 0;  // that copy; 0 = as many as this rank has cores
  double audit_percent = 1;   // of the blocks that seem unchanged, compared with their checksum in every capture
};

// Bit flips injected on purpose into protected memory, as in the published experiments: `/eN` of a schedule.
struct FlipSettings {
  std::optional<std::uint32_t> bit;  // which bit of the element; none = no injection
  double every_s = 10;
  std::uint32_t count = 1;  // how many flips each time
  std::uint64_t limit = 0;  // flips in all; 0 = no limit
  std::string region;       // empty = any
  std::uint64_t seed = 1;
};

// When and why the program will be asked to stop.
struct DeadlineSettings {
  std::vector<std::string> signals;  // "SIGTERM": taken over, and taken for a wish that the program stops
  std::uint64_t at_unix_s = 0;       // end of the allocation; 0 = not known
  double in_s = 0;                   // the same, counted from open; 0 = not known
  double grace_s = 30;               // from such a signal until the program is killed
  double margin_s = 10;              // what the program needs itself between its last checkpoint and its end
};

// Who does the work behind the capture: the call itself, a thread of each node's first rank, or its last rank.
enum class AsyncMode { off, thread, rank };

// What stays of a job that the program has finished: nothing, the newest version of level 4, or everything, as if it
// had only been closed.
enum class FinishKeep { nothing, last, all };

// What a checkpoint does where no more versions may be in flight.
enum class WhenFull { wait, skip };

// Work behind the capture, in the background.
struct AsyncSettings {
  AsyncMode mode = AsyncMode::thread;
  std::uint32_t nice = 10;           // of the engine's thread
  std::optional<std::uint32_t> cpu;  // where it runs; none = anywhere
  double flush_mib_s = 0;            // written to the global tier by a node, at most; 0 = no limit
  std::uint32_t in_flight = 2;       // captured versions that wait for the engine
  std::uint64_t in_flight_mib = 0;   // the same, of a node's memory; 0 = no limit
  WhenFull when_full = WhenFull::wait;
};

// Which meters tell the energy of a node; docs/energy.md.
struct EnergySettings {
  std::vector<std::string> meters = {"auto"};  // or {"off"}, or names of meters
  std::uint32_t period_ms = 100;               // between two samples
  std::string profile = "generic";             // of the model: built in, or a file
  double tdp_w = 0;                            // of this machine's processors; 0 = what the profile says
  std::string stream;                          // a CSV file that an external meter writes; empty = none
  double stream_offset_s = 0;                  // added to its times gives the time here
  std::string trace;                           // a recorded trace to replay; empty = none
  std::string root;                            // stands before /sys, /proc and /dev
};

// What `schedule = "auto"` makes least: the time of the run, its energy, or the energy as far as it takes little
// longer.
enum class ScheduleGoal { time, energy, mixed };

struct AutoSchedule {
  bool is_on = false;
  ScheduleGoal goal = ScheduleGoal::time;
  double bound_percent = 2;  // mixed: how much longer than the shortest the run may take
};

// What the job is up against. Seconds; 0 = not known.
struct FailureSettings {
  double node_mtbf_s = 0;          // of a single node
  std::array<double, 5> mtbf_s{};  // of the whole job, by the level that such failures need; [0] unused
};

// Which phases of a checkpoint run slower to save energy: none, all at a fixed ratio of the base clock, or those that
// save energy of the node.
enum class ThrottlePolicy { off, fixed, measured };

// What slows them.
enum class ActuatorKind { automatic, cpufreq, powercap, uclamp, dry_run, emulated };

struct GovernorSettings {
  ThrottlePolicy policy = ThrottlePolicy::off;
  ActuatorKind actuator = ActuatorKind::automatic;
  double ratio_compress = 0.875;      // of the base clock
  double ratio_write = 0.85;          // the same
  double max_slowdown_percent = 15;   // of a phase, with ThrottlePolicy::measured
  std::string state_path;             // default /dev/shm/diapause-power-<uid>
  std::string watchdog = "diapause";  // the command that puts everything back if the job dies
};

struct Settings {
  std::string memory_path;               // default /dev/shm/diapause-<uid>
  std::string local_path;                // empty = there is no local tier
  std::string global_path = "diapause";  // relative to the working directory; made absolute by the engine
  FileCount global_files;
  GlobalMode global_mode = GlobalMode::staged;
  std::uint32_t ranks_per_node = 0;     // 0 = nodes are what MPI_COMM_TYPE_SHARED says; else emulated nodes
  std::string node_name;                // default: host name, with emulated nodes "node<i>"
  std::vector<std::string> node_names;  // emulated nodes: the i-th node's name
  std::array<LevelSettings, 5> levels;  // [1]..[4]; [0] unused
  std::uint32_t group_nodes = 4;        // level 3: n
  std::uint32_t parity = 1;             // level 3: m
  AutoSchedule auto_schedule;
  FailureSettings failures;
  FinishKeep finish_keep = FinishKeep::nothing;
  double lock_wait_s = 10;  // how long to wait for an earlier run of this job to let go
  CaptureSettings capture;
  CodecSettings codec;
  FlipSettings flips;
  DeadlineSettings deadline;
  AsyncSettings async;
  EnergySettings energy;
  GovernorSettings governor;
  std::string source;  // file the settings came from; empty = defaults and environment
  // Variables that begin with DIAPAUSE_ and are no keys. They change nothing.
  std::vector<std::string> unknown_variables;

  LevelSettings& level(int number) { return levels[static_cast<std::size_t>(number)]; }
  const LevelSettings& level(int number) const { return levels[static_cast<std::size_t>(number)]; }
};

// The environment as this folder sees it: "NAME" -> value.
using Environment = std::vector<std::pair<std::string, std::string>>;

Settings default_settings(std::uint32_t uid);

// `text` is the TOML of the file `path` (for messages); empty text and path: no file. Environment variables
// DIAPAUSE_<SECTION>_<KEY> override the file. Under Slurm, what it says of the allocation stands in for what is not set
// in [deadline]. Code::config names file, line and key, or the variable, and says what is
// allowed.
Result<Settings> parse_settings(const std::string& text, const std::string& path, const Environment& environment,
                                std::uint32_t uid);

// "auto", "ckp(3,5,7,11)" or "ckp(3,5,7,11)/e1": level intervals in minutes of `minute_s` seconds each (0 = level never
// due), and the bit flipped. Code::config says what is wrong in the text.
Status apply_schedule(const std::string& text, double minute_s, Settings& settings);

}  // namespace diapause::config
