// Writes files of /sys that take commands, and makes control groups. Symbolic links are followed,
// because /sys consists of them. Errors name the path; a missing file is Code::not_found, and one
// that must not be written is Code::denied.
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/kernel.hpp"

namespace diapause::sys {

// Returns whether the file can be opened for writing. Nothing is written.
Status check_writable(Kernel& kernel, const std::string& path);

// Writes the text as one line, in one call, into a file that exists. In a plain file, as in tests,
// older lines may remain behind it.
Status write_value(Kernel& kernel, const std::string& path, const std::string& text);

// These make and remove a control group, which is a directory. It is no error if it already exists
// or is already gone.
Status make_group(Kernel& kernel, const std::string& path);
Status remove_group(Kernel& kernel, const std::string& path);

}  // namespace diapause::sys
