// Makes the processes of a stored job again, in the namespaces of a process 1 that waits, with the ids they had.
#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

#include "base/result.hpp"
#include "process/freeze.hpp"
#include "process/openings.hpp"
#include "process/state.hpp"

namespace diapause::process {

struct Birthplace {
  pid_t first = 0;
  const LogSink& log;
  std::function<Status()> go;
};

// `place.first`: process 1 of the new namespaces, forked from this process after `openings` were made, and waiting.
// `contents` are of processes. When they are complete, `go` is called, and they run if it succeeds. On success all run,
// and the calls that go on until a time are the result; on failure nothing does, and `first` is to be ended.
// `place.log` is told what is not as it was.
Result<TimedCalls> restore(const Job& job, const Openings& openings, const std::vector<StoredContents>& contents,
                           const ReadContents& read, const Birthplace& place);

// Whether this machine can run what the registers and the kernel's own code in the image are of. Before any process.
Status check_machine(const Job& job);

}  // namespace diapause::process
