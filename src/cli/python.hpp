// Starts the Python package of the project (python/), which lies beside this program in a build and
// in an installation.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace diapause::cli {

// Replaces this process by the package with these arguments, using the first `python3` of PATH.
// Returns the exit status only if that fails, after reporting why.
int become_python(const std::vector<std::string>& arguments);
// Runs it instead, waits for its end, and ignores what it prints. It tells the user of its errors.
Status run_python(const std::vector<std::string>& arguments);

}  // namespace diapause::cli
