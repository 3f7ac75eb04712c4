// Reads contents of a frozen job.
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "process/dump.hpp"

namespace diapause::process {

// Reads `to.size()` bytes from `offset` on. The process must stand still, unless the bytes were
// read already.
Status read_contents(const Contents& contents, std::uint64_t offset, MutableBytes to);
// Reads the contents that no copy of a process has, and keeps them in `dump`.
Status read_what_is_not_forked(Dump& dump);

}  // namespace diapause::process
