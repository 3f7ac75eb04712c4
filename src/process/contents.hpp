// Reads contents of a frozen job.
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "process/dump.hpp"

namespace diapause::process {

// `to.size()` bytes from `offset` on. The job must stand still.
Status read_contents(const Contents& contents, std::uint64_t offset, MutableBytes to);

}  // namespace diapause::process
