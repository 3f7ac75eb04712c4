// Asking another program.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace diapause::sys {

// What `command` (looked up in PATH) writes to standard output until it ends, at most 1 MiB; it reads nothing, and its
// standard error is ours. Waits for it. Fails if it cannot be started or does not succeed.
Result<std::string> output_of(const std::vector<std::string>& command);

}  // namespace diapause::sys
