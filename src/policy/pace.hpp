// The frequency of checkpoints with `schedule = "auto"`, and their levels.
#pragma once

#include <array>
#include <cstdint>

namespace diapause::policy {

// Numbers of checkpoints by level; [0] is unused.
using CountByLevel = std::array<std::uint64_t, 5>;

// A pace, as plain bytes: rank 0 chooses it, and all ranks follow it from the call in which they
// were told.
struct Pace {
  std::uint32_t number = 0;  // number of the choice, from 1; 0 if there is no pace yet
  double every_s = 0;        // from the end of a checkpoint until the next one is due
  CountByLevel one_in{};  // one of so many checkpoints has that level or a deeper one; 0: none has
  // The checkpoints since the last one of that level or a deeper one, at the start of the job.
  CountByLevel since{};

  // Returns the deepest level whose turn it is.
  int next_level(const CountByLevel& since_last) const {
    for (std::size_t level = one_in.size() - 1; level > 0; --level) {
      if (one_in[level] > 0 && since_last[level] + 1 >= one_in[level])
        return static_cast<int>(level);
    }
    return 0;
  }
};

}  // namespace diapause::policy
