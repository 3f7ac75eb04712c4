// Reads contents of a frozen job.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "process/dump.hpp"

namespace diapause::process {

// Reads `to.size()` bytes from `offset` on. The process must stand still, unless the bytes were
// read already.
Status read_contents(const Contents& contents, std::uint64_t offset, MutableBytes to);
// Takes parts that are all zero out of the contents that begin empty, and returns them by the
// process, in rising order. What they are read from must stand still. `known` tells of those that
// need not be read.
using Zeros = std::map<std::uint32_t, std::vector<Extent>>;
using KnownZerosOf =
    std::function<std::optional<bool>(std::uint32_t process, std::uint64_t address)>;
Zeros leave_out_zeros(Dump& dump, const KnownZerosOf& known = {});
// Reads the contents that no copy of a process has, and keeps them in `dump`.
Status read_what_is_not_forked(Dump& dump);

}  // namespace diapause::process
