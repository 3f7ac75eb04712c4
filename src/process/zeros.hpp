// Pages of a frozen process that hold nothing but zeros, although they were written to.
#pragma once

#include <sys/types.h>

#include <vector>

#include "process/proc.hpp"

namespace diapause::process {

// `extents` without the parts that are all zero, as far as those are 64 KiB from a multiple of 64 KiB on: finer parts
// would cost more in the image than they save. Memory that cannot be read counts as not zero.
std::vector<Extent> without_zeros(pid_t process, const std::vector<Extent>& extents);

}  // namespace diapause::process
