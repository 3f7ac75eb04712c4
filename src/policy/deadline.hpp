// Decides which checkpoint still fits before the end of an allocation, and when it must begin. The
// functions are pure; rank 0 calls them and tells the others.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace diapause::policy {

// The expected duration of a checkpoint of each level in seconds; nullopt: the level cannot be
// taken. [0] is unused.
using LevelSeconds = std::array<std::optional<double>, 5>;

// The duration of checkpoints, learnt from those that were taken.
class CheckpointTimes {
 public:
  // Records that a checkpoint of `bytes` over all ranks reached `level` in `seconds`. Slower
  // checkpoints replace the estimate at once; faster ones move it by half the difference.
  void learn(int level, std::uint64_t bytes, double seconds);

  // Returns the duration to plan with for a checkpoint at `level` (1..4). For a level that was seen
  // it is half as much again, and more if there are more bytes now. Otherwise it is a guess that
  // also slow machines keep: a few seconds, and 100 MB/s (level 1: 500 MB/s) for each node.
  double expect(int level, std::uint64_t bytes, std::uint64_t nodes) const;

 private:
  struct Seen {
    std::uint64_t bytes;
    double seconds;
  };
  std::array<std::optional<Seen>, 5> seen_;
};

// Returns the deepest level that ends within `left_s`. Returns level 1 if none does, because an
// attempt costs nothing then.
int deepest_in_time(const LevelSeconds& levels, double left_s);

// Returns how long before the end the last checkpoint has to begin: the duration of the deepest
// level that takes at most a quarter of `whole_s`, the time available at the start. So a short
// allocation is not spent on a deep checkpoint alone.
double lead_s(const LevelSeconds& levels, double whole_s);

// Returns whether the last checkpoint has to begin now, `left_s` before the end, because the next
// agreement, expected in `next_s`, could be too late even if it took only twice as long as
// expected.
bool must_begin(double left_s, double lead_s, double next_s);

}  // namespace diapause::policy
