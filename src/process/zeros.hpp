// Finds pages of a stopped process that were written to and hold nothing but zeros.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "process/proc.hpp"

namespace diapause::process {

// Parts of 64 KiB that are aligned may count as zero. Smaller ones would cost more in the image
// than they save.
inline constexpr std::uint64_t kZeroGroupBytes = 16 * kPageBytes;

// Says whether the part at an address is all zero, if that is known.
using KnownZeros = std::function<std::optional<bool>(std::uint64_t address)>;

bool is_all_zero(ByteView bytes);
// Returns the parts of `range` that are all zero, in rising order. Memory that cannot be read
// counts as not zero. `is_forced` says that it is read as a debugger reads.
std::vector<Extent> zeros_in(pid_t process, const Extent& range, bool is_forced,
                             const KnownZeros& known);
// Returns the parts of `range` that are not in `taken`, which is in rising order.
std::vector<Extent> rest_of(const Extent& range, const std::vector<Extent>& taken);

}  // namespace diapause::process
