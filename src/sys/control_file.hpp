// Files of /sys that take commands, and control groups. Links are followed, as /sys is made of them. Errors name the
// path; a file that is not there is Code::not_found, one that may not be written Code::denied.
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/kernel.hpp"

namespace diapause::sys {

// Whether the file can be opened for writing. Nothing is written.
Status check_writable(Kernel& kernel, const std::string& path);

// Writes the text as a line, in one call, into a file that exists. (Of a plain file, as in tests, other lines may be
// left behind it.)
Status write_value(Kernel& kernel, const std::string& path, const std::string& text);

// Control groups are directories. One that is there already, or gone already, is fine.
Status make_group(Kernel& kernel, const std::string& path);
Status remove_group(Kernel& kernel, const std::string& path);

}  // namespace diapause::sys
