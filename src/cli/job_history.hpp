// What happened to a job, from its ledger (docs/formats/ledger.md): checkpoints, restarts and failures, line by line
// and in sum. Pure: it takes lines and asks nobody else. What has not the type that it should have is left out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace diapause::cli {

// Of the whole job, until the last line.
struct HistorySums {
  std::uint64_t checkpoints = 0;
  std::uint64_t failed = 0;  // of them, those that reached no level
  std::uint64_t starts = 0;
  std::uint64_t failures = 0;  // starts that ended without a word, as far as another one came after them
  std::uint64_t restarts = 0;  // starts that went on from a version
  double blocked_s = 0;        // that checkpoints held the program up
  double runtime_s = 0;        // from each start to its last line
  bool is_closed = false;      // the last start has ended as it should
  double last_unix_s = 0;      // of the last line
  std::optional<std::uint64_t> newest;
  int newest_level = 0;
};

class HistoryReader {
 public:
  // Takes a line of the ledger. Lines of text that are ready to be shown now, without their ends: several checkpoints
  // of level 1 in a row become one, which is ready when something else comes.
  std::vector<std::string> add_line(std::string_view line);
  // What is not shown yet.
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
  std::vector<Checkpoint> small_;  // of level 1, in a row, not shown yet
  double opened_unix_s_ = 0;       // of the start that the lines are of
  double ran_before_s_ = 0;        // all starts before it
  bool has_ended_ = true;          // it was closed, or told to stop
};

// The head of the table that add_line() gives the rows of.
std::string history_head();
// "24 checkpoints held the program up for 0.06 s of 12.30 s (0.5 %); 2 starts, 1 failure, 1 restart".
std::string history_text(const HistorySums& sums);

}  // namespace diapause::cli
