// What the ledger of a job says of the cost of its checkpoints. Pure: it takes lines and asks nobody else. What is not
// as it should be is left out.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace diapause::cli {

struct MeasuredLevel {
  std::optional<double> blocked_s;  // medians
  std::optional<double> behind_s;
  std::optional<double> restart_s;
  std::size_t checkpoints = 0, restarts = 0;
};

struct MeasuredJob {
  std::uint32_t nodes = 0, ranks = 0;
  std::uint64_t bytes = 0;  // protected, of all ranks
  std::array<MeasuredLevel, 6> levels;
  std::optional<double> compute_w;     // of all nodes: mean while the program computed
  std::optional<double> checkpoint_w;  // and during phases beside which it waited
  std::size_t failed_starts = 0;       // that did not end with a close
  double ran_s = 0;                    // in all starts, as far as lines tell
};

// Takes the lines of a ledger one after the other.
class MeasuredJobReader {
 public:
  void add_line(std::string_view line);
  MeasuredJob take();

 private:
  struct Line;
  void add_checkpoint(const Line& line);
  void add_restart(const Line& line);
  void add_energy(const Line& line);

  MeasuredJob job_;
  std::array<std::vector<double>, 6> blocked_, behind_, restart_;
  bool is_open_ = false;
  std::optional<double> opened_unix_s_, last_unix_s_;
  double program_j_ = 0, program_s_ = 0, waiting_j_ = 0, waiting_s_ = 0;
};

}  // namespace diapause::cli
