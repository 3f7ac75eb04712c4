// Finds the holders of a lock in the kernel's data: the processes that have the locked file open.
#pragma once

#include <string>

#include "sys/file.hpp"

namespace diapause::sys {

// Returns the processes of this machine that hold a lock on that file, such as "process 4711
// ('heat')"; empty if none can be seen. The text in a lock file, in contrast, names the process
// that took the lock, and not a child that has inherited it.
std::string lock_holders(const File& file);

}  // namespace diapause::sys
