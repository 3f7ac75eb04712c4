// Begins threads again that have ended and left their stacks and their thread-local storage behind.
#pragma once

#include <sys/types.h>

#include <span>

#include "base/result.hpp"
#include "process/freeze.hpp"
#include "sys/ended_thread.hpp"

namespace diapause::process {

// Begins these threads, with all signals masked, but those that live already. All of the job with
// process `first` is frozen meanwhile, and let go then, so there must be no copies of it
// (copies.hpp). `timed` is as in freeze.hpp. A process that has ended is passed over.
Status begin_again(pid_t first, TimedCalls& timed, std::span<const sys::EndedThread> threads);

}  // namespace diapause::process
