// The limit of open files (ulimit -n), which a process may raise for itself and not for those that
// it starts.
#pragma once

#include <cstdint>

#include "base/result.hpp"

namespace diapause::sys {

// Lets this process have so many files open, once in its life. Code::denied if the system does not
// permit it.
Status allow_open_files(std::uint64_t count);
// Puts the limit back to what it was before the first call of allow_open_files(). A child calls
// this between fork and exec: it takes no lock and no memory.
void restore_open_files();

}  // namespace diapause::sys
