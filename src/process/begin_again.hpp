// Begins threads again that have ended and left their stacks and their thread-local storage behind.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "process/freeze.hpp"

namespace diapause::process {

// These are addresses in the memory of the process.
struct LeftBehind {
  pid_t process = 0;              // its id here
  std::uint64_t entry = 0;        // of a function that takes nothing and does not return
  std::uint64_t stack = 0;        // where that function has its return address, as if it was called
  std::uint64_t thread_area = 0;  // the thread-local storage
  std::uint64_t id_at = 0;  // where the C library keeps its id, and the kernel puts 0 at its end
};

// Begins those of these threads that have ended, with all signals masked. All of the job with
// process `first` is frozen meanwhile, and let go then, so there must be no copies of it
// (copies.hpp). `timed` is as in freeze.hpp. Nothing happens if none of the threads has ended. A
// process that has ended is passed over.
Status begin_again(pid_t first, TimedCalls& timed, std::span<const LeftBehind> threads);

}  // namespace diapause::process
