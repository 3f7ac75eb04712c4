// The clocks of a job that begin with its machine. Programs wait until a time of theirs, and expect
// that they never go back, as they would on a machine that began later.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/result.hpp"

namespace diapause::process {

struct Clocks {
  std::uint64_t monotonic_ns = 0;   // CLOCK_MONOTONIC
  std::uint64_t since_boot_ns = 0;  // CLOCK_BOOTTIME
};

// Returns the clocks as a process sees them now.
Clocks clocks_of(pid_t process);

// Makes clocks that tell `clocks` now those of the processes that `process` makes from now on. It
// has just called unshare(CLONE_NEWTIME), and has made none since.
Status set_clocks(pid_t process, const Clocks& clocks);

}  // namespace diapause::process
