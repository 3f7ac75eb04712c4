// Handles paths as users give them, and opens the files that they name.
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace diapause::sys {

// Returns the absolute path without links. The path must exist.
Result<std::string> canonical_path(const std::string& path);

// Returns the same path without redundant parts: doubled slashes, "." and trailing slashes. Links
// are not resolved.
std::string plain_spelling(const std::string& path);

// Opens an existing regular file for reading and writing. The last component must not be a link;
// anybody may own it.
Result<File> open_existing_file(Kernel& kernel, const std::string& path);

// Opens an open file once more, for reading, whatever its name is now.
Result<File> open_again(const File& file);

// Removes the file. It is no error if it is absent.
Status remove_file(Kernel& kernel, const std::string& path);

}  // namespace diapause::sys
