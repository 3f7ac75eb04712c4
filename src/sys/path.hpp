// Files that a user names by path, wherever they are: for the command, not for checkpoints.
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace diapause::sys {

// Absolute and without links; what it names must exist.
Result<std::string> canonical_path(const std::string& path);

// Opens an existing regular file for reading and writing. The last component must not be a link; anybody may own it.
Result<File> open_existing_file(Kernel& kernel, const std::string& path);

// Absent is fine.
Status remove_file(Kernel& kernel, const std::string& path);

}  // namespace diapause::sys
