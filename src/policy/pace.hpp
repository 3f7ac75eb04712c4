// How often checkpoints come with `schedule = "auto"`, and which of them are of which level.
#pragma once

#include <array>
#include <cstdint>

namespace diapause::policy {

// Checkpoints, by level: [0] is unused.
using CountByLevel = std::array<std::uint64_t, 5>;

// Plain bytes: rank 0 chooses it and all ranks follow it, as of the call in which they were told.
struct Pace {
  std::uint32_t number = 0;  // of the choice, from 1; 0: there is none yet
  double every_s = 0;        // from the end of a checkpoint until the next is due
  CountByLevel one_in{};     // of so many checkpoints one is of that level or a deeper one; 0: none is
  CountByLevel since{};      // when the job started: checkpoints behind the last of that level or a deeper one

  // The deepest level whose turn it is.
  int next_level(const CountByLevel& since_last) const {
    for (std::size_t level = one_in.size() - 1; level > 0; --level) {
      if (one_in[level] > 0 && since_last[level] + 1 >= one_in[level]) return static_cast<int>(level);
    }
    return 0;
  }
};

}  // namespace diapause::policy
