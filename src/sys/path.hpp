// Paths as users give them, and files that they name so.
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace diapause::sys {

// Absolute and without links; what it names must exist.
Result<std::string> canonical_path(const std::string& path);

// The same path without what says nothing: doubled slashes, "." and slashes at the end. Links are not looked at.
std::string plain_spelling(const std::string& path);

// Opens an existing regular file for reading and writing. The last component must not be a link; anybody may own it.
Result<File> open_existing_file(Kernel& kernel, const std::string& path);

// An open file once more, for reading, whatever it is called by now.
Result<File> open_again(const File& file);

// Absent is fine.
Status remove_file(Kernel& kernel, const std::string& path);

}  // namespace diapause::sys
