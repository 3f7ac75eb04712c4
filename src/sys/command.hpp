// Asking another program, or becoming one.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace diapause::sys {

// What `command` (looked up in PATH) writes to standard output until it ends, at most 1 MiB; it reads nothing, and its
// standard error is ours. Waits for it. Fails if it cannot be started or does not succeed.
Result<std::string> output_of(const std::vector<std::string>& command);

// Becomes `command` (looked up in PATH): it has our files, environment and process number. Returns only if it cannot be
// started.
Error become(const std::vector<std::string>& command);

}  // namespace diapause::sys
