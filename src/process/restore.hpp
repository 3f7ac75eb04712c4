// Makes the processes of a stored job again, in the namespaces of a process 1 that waits, with the
// ids they had.
#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

#include "base/result.hpp"
#include "process/fill_behind.hpp"
#include "process/freeze.hpp"
#include "process/openings.hpp"
#include "process/state.hpp"

namespace diapause::process {

struct Birthplace {
  pid_t first = 0;
  const LogSink& log;
  std::function<Status()> go;
  // Fills most of the memory that processes do not share, after they have begun to run. If it is
  // null, all is filled before.
  FillBehind* behind = nullptr;
  // Gets the descriptor by which addresses in calls of the job's processes are translated. If it is
  // empty, none are.
  std::function<Status(int listener)> translate = {};
};

// `place.first` is process 1 of the new namespaces. It was forked from this process after
// `openings` were made, and waits. `contents` are those of processes. When all are complete,
// `place.go` is called, and they run if it succeeds. The result has the calls that wait until a
// time. On failure no process runs, and `place.first` has to be ended. `place.log` is told what
// differs from before, and if nothing can be filled behind.
Result<TimedCalls> restore(const Job& job, const Openings& openings,
                           const std::vector<StoredContents>& contents, const ReadContents& read,
                           const Birthplace& place);

// Checks that the processes of an image can go on with the processor and the kernel of this
// machine. It is called before any process is made.
Status check_machine(const Job& job);

}  // namespace diapause::process
