// Before the end of an allocation: which checkpoint still fits, and when it is time for it. Pure: rank 0 asks, and
// tells the others.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace diapause::policy {

// What a checkpoint of each level would take, in seconds; none: this level cannot be taken. [0] unused.
using LevelSeconds = std::array<std::optional<double>, 5>;

// How long checkpoints take, learnt from those that were taken.
class CheckpointTimes {
 public:
  // A checkpoint of `bytes` of all ranks reached `level` in so many seconds. Slower ones are believed at once, faster
  // ones by halves.
  void learn(int level, std::uint64_t bytes, double seconds);

  // What a checkpoint at `level` (1..4) is to be counted with. Of a level that was seen: half as much again, and more
  // if there are more bytes now. Otherwise a guess that slow machines keep, too: a few seconds, and 100 MB/s (level 1:
  // 500 MB/s) for each node.
  double expect(int level, std::uint64_t bytes, std::uint64_t nodes) const;

 private:
  struct Seen {
    std::uint64_t bytes;
    double seconds;
  };
  std::array<std::optional<Seen>, 5> seen_;
};

// The deepest level that ends within `left_s`; level 1 if none does, because trying costs nothing then.
int deepest_in_time(const LevelSeconds& levels, double left_s);

// How long before the end the last checkpoint has to begin: what the deepest level takes that needs no more than a
// quarter of `whole_s`, the time there was at the start. So a short allocation is not spent on a deep checkpoint alone.
double lead_s(const LevelSeconds& levels, double whole_s);

// Whether the last checkpoint has to begin now, `left_s` before the end: waiting for the next agreement, in `next_s` by
// estimate, could be too late even if it took twice as long.
bool must_begin(double left_s, double lead_s, double next_s);

}  // namespace diapause::policy
