// Finds pages of a frozen process that were written to and hold nothing but zeros.
#pragma once

#include <sys/types.h>

#include <vector>

#include "process/proc.hpp"

namespace diapause::process {

// Returns `extents` without the aligned parts of 64 KiB that are all zero. Smaller parts would cost
// more in the image than they save. Memory that cannot be read counts as not zero.
std::vector<Extent> without_zeros(pid_t process, const std::vector<Extent>& extents);

}  // namespace diapause::process
