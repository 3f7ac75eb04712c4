// Gives a job again what `launch` was started with: standard streams, and other descriptors.
#pragma once

#include "base/log.hpp"
#include "base/result.hpp"
#include "process/state.hpp"

namespace diapause::process {

struct StandardStream {
  int file = -1;  // a new number, which is the caller's
  // It is the file that the job had read, opened again, and may take the place of what this process
  // was given, from which nothing can be read.
  bool takes_place = false;
};

// Returns what a job has in place of a description of the kind `standard`: what this process has
// under the same number, or /dev/null. If the job was reading a file, it goes on where it was in
// that file, whether this process was given the same one or none. A warning says so if it was given
// something else. Code::mismatch says that the file is shorter than what the job had read of it.
Result<StandardStream> open_standard_stream(const Description& one, const LogSink& log);

}  // namespace diapause::process
