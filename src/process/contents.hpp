// Reads contents of a frozen job.
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "process/dump.hpp"

namespace diapause::process {

// `to.size()` bytes from `offset` on. Its process must stand still, unless they were read already.
Status read_contents(const Contents& contents, std::uint64_t offset, MutableBytes to);
// Reads into `dump` what no copy of a process has.
Status read_what_is_not_forked(Dump& dump);

}  // namespace diapause::process
