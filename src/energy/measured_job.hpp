// Derives the cost of a job's checkpoints from its ledger. The code is pure: it takes lines and
// asks nobody else. Values that are not as they should be are left out.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>

namespace diapause::energy {

struct MeasuredLevel {
  std::optional<double> blocked_s;  // medians
  // The blocked time without the wait for versions in flight to make room. So long a checkpoint
  // blocks at other intervals, which leave them the time behind_s.
  std::optional<double> with_room_s;
  std::optional<double> behind_s;
  std::optional<double> restart_s;
  std::size_t checkpoints = 0, restarts = 0;  // in all
  std::uint64_t since = 0;       // checkpoints behind the last of this level or a deeper one
  std::size_t failures = 0;      // those followed by a restart that needed this level
  std::optional<double> mtbf_s;  // for such failures, as the last choice of a schedule took it
};

struct MeasuredJob {
  std::uint32_t nodes = 0, ranks = 0;
  std::uint64_t bytes = 0;  // protected bytes of all ranks
  std::array<MeasuredLevel, 6> levels;
  std::optional<double> compute_w;     // mean of all nodes while the program computed
  std::optional<double> checkpoint_w;  // mean during phases for which it waited
  std::size_t failed_starts = 0;       // starts that did not end with a close
  double ran_s = 0;                    // seconds in all starts, as far as lines tell
  double blocked_s = 0;                // part of it that checkpoints took
  double restarting_s = 0;             // part of it that restarts took
};

// Takes the lines of a ledger one after the other. Times and powers are those since the job has had
// as many ranks and nodes as it has now.
class MeasuredJobReader {
 public:
  // The medians are of so many checkpoints or restarts of a level.
  static constexpr std::size_t kWindow = 32;

  void add_line(std::string_view line);
  // Returns the job as the lines so far tell it.
  MeasuredJob job() const;

 private:
  struct Line;
  struct Samples {
    std::deque<double> blocked_s, with_room_s, behind_s, restart_s;
  };
  void add_open(const Line& line);
  void add_checkpoint(const Line& line);
  void add_restart(const Line& line);
  void add_schedule(const Line& line);
  void add_energy(const Line& line);
  double start_ran_s() const;

  MeasuredJob job_;  // but for medians and powers
  std::array<Samples, 6> samples_;
  bool is_open_ = false;
  bool has_failed_ = false;  // the start before this one
  std::optional<double> opened_unix_s_, last_unix_s_;
  double program_j_ = 0, program_s_ = 0, waiting_j_ = 0, waiting_s_ = 0;
};

}  // namespace diapause::energy
