// Runs another program for its output, or replaces this process by one.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace diapause::sys {

// Runs `command` (looked up in PATH), waits for its end, and returns what it wrote to standard
// output, at most 1 MiB. Its standard input is empty, and it shares our standard error. Fails if it
// cannot be started or exits with an error.
Result<std::string> output_of(const std::vector<std::string>& command);

// Replaces this process by `command` (looked up in PATH), which inherits the open files, the
// environment and the process number. Returns only if the command cannot be started.
Error become(const std::vector<std::string>& command);

}  // namespace diapause::sys
