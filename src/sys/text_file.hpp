// Small text files that a user, or another program for the user, reads or wrote.
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/kernel.hpp"

namespace diapause::sys {

// The whole file; links are followed, anybody may own it. Errors name the path; more than 1 MiB is an error.
Result<std::string> read_text_file(Kernel& kernel, const std::string& path);

// Adds a line to the file, which is made with mode 0600 if there is none. A link is not followed, and what is there
// must be a regular file. Not synced. Errors name the path.
Status append_line(Kernel& kernel, const std::string& path, const std::string& line);

}  // namespace diapause::sys
