// The history of a job from its ledger (docs/formats/ledger.md): checkpoints, restarts and
// failures, as lines and as sums. The class is pure: its only input are the lines. Fields of a
// wrong type are ignored.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace diapause::cli {

// Sums over the whole job, up to the last line.
struct HistorySums {
  std::uint64_t checkpoints = 0;
  std::uint64_t failed = 0;  // checkpoints that reached no level
  std::uint64_t starts = 0;
  // Starts that ended without a last line, as far as another start followed.
  std::uint64_t failures = 0;
  std::uint64_t restarts = 0;  // starts from a version
  double blocked_s = 0;        // blocked time of all checkpoints
  double runtime_s = 0;        // from each start to its last line
  bool is_closed = false;      // the last start ended normally
  double last_unix_s = 0;      // time of the last line
  std::optional<std::uint64_t> newest;
  int newest_level = 0;
  std::size_t lines = 0;          // lines that tell an event
  std::size_t damaged_lines = 0;  // lines that do not, which are left out
  // It is the schema of lines that are not for this version, and are left out.
  std::optional<std::uint64_t> other_schema;
};

class HistoryReader {
 public:
  // Takes a line of the ledger. Returns the lines of text that are ready to be shown, without line
  // ends. Several consecutive checkpoints of level 1 become one line, which is ready when something
  // else follows.
  std::vector<std::string> add_line(std::string_view line);
  // Returns the text that was not shown yet.
  std::vector<std::string> flush();
  const HistorySums& sums() const { return sums_; }

 private:
  struct Checkpoint {
    std::uint64_t version, bytes;
    int level;
    double blocked_s;
    std::string error;
  };
  struct Line;

  void add_open(const Line& line, std::vector<std::string>& ready);
  void add_checkpoint(const Line& line, std::vector<std::string>& ready);
  static std::string restart_text(const Line& line);
  static std::string schedule_text(const Line& line);
  static std::string row_of(const Checkpoint& one);

  HistorySums sums_;
  std::vector<Checkpoint> small_;  // consecutive checkpoints of level 1 that were not shown yet
  double opened_unix_s_ = 0;       // beginning of the present start
  double ran_before_s_ = 0;        // duration of all starts before it
  bool has_ended_ = true;          // it was closed, or told to stop
};

// Returns the head of the table whose rows add_line() returns.
std::string history_head();
// Returns text such as "24 checkpoints held the program up for 0.06 s of 12.30 s (0.5 %); 2 starts,
// 1 failure, 1 restart".
std::string history_text(const HistorySums& sums);

}  // namespace diapause::cli
