// The Python package of the project (python/), which lies beside this program, in a build and where it is installed.
#pragma once

#include <string>
#include <vector>

namespace diapause::cli {

// Becomes the package with these arguments, in the first `python3` of PATH. Returns only if that cannot be done, having
// said why, with the exit status.
int become_python(const std::vector<std::string>& arguments);

}  // namespace diapause::cli
