// Pseudo-terminals by the end that reads what programs write: what dump and restore share.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "process/state.hpp"

namespace diapause::process {

// N of /dev/pts/N; nullopt: it is no such end.
std::optional<std::uint32_t> number_of_terminal(int master);
// All but the output, and who it belongs to.
Result<Terminal> look_at_terminal(int master);
// The output that nobody has read; it can be seen only by reading it, and is written once more. Not of a terminal that
// works with packets.
Result<ByteVector> take_output(int master);

// Makes one; the number of the reading end, which the caller closes.
Result<int> open_terminal(const Terminal& from);
// The other end of it, which the caller closes.
Result<int> open_terminal_again(int master, std::uint32_t flags);

}  // namespace diapause::process
