// Reads and sets how threads are scheduled: which processors they may use, and how soon they get
// them and the disks.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "base/bytes.hpp"
#include "process/state.hpp"

namespace diapause::process {

// Returns how the kernel schedules a thread. `thread` of the result is not set.
Schedule schedule_of(pid_t thread);
// Returns the part of `own` that differs from `given`.
Schedule own_part(Schedule own, const Schedule& given);
bool is_empty(const Schedule& schedule);

// Returns the processors that are in both masks. The result is empty if there is none.
ByteVector common_processors(ByteView one, ByteView other);

// Schedules a thread, which is scheduled as `given` says, by `own`. Where the machine does not
// allow that, the thread keeps what was given, and `lost` is told what it lacks and why.
void set_schedule(pid_t thread, const Schedule& own, const Schedule& given,
                  const std::function<void(const std::string&)>& lost);

}  // namespace diapause::process
