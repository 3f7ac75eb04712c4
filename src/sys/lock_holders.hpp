// Who has a lock, as the kernel tells it: the processes that hold the file on which it lies.
#pragma once

#include <string>

#include "sys/file.hpp"

namespace diapause::sys {

// The processes of this machine that hold a lock on that file, "process 4711 ('heat')"; empty if none can be seen. What
// is written in a lock file names the process that took the lock, and not a child that has inherited it.
std::string lock_holders(const File& file);

}  // namespace diapause::sys
