// Starts the Python package of the project (python/), which lies beside this program in a build and
// in an installation.
#pragma once

#include <string>
#include <vector>

namespace diapause::cli {

// Replaces this process by the package with these arguments, using the first `python3` of PATH.
// Returns the exit status only if that fails, after reporting why.
int become_python(const std::vector<std::string>& arguments);

}  // namespace diapause::cli
