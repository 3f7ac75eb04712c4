// Where, and how soon, threads get processors and disks.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "base/bytes.hpp"
#include "process/state.hpp"

namespace diapause::process {

// Of a thread, with what the kernel tells; `thread` is not set.
Schedule schedule_of(pid_t thread);
// What of `own` is not as in `given`.
Schedule own_part(Schedule own, const Schedule& given);
bool is_empty(const Schedule& schedule);

// The processors that are in both masks; empty: there is none.
ByteVector common_processors(ByteView one, ByteView other);

// Gives a thread that has what `given` says what is its own. What the machine does not allow stays as given, and `lost`
// is told: what, and why.
void set_schedule(pid_t thread, const Schedule& own, const Schedule& given,
                  const std::function<void(const std::string&)>& lost);

}  // namespace diapause::process
