// Has functions on pseudo-terminals that dump and restore share. A terminal is known by the end
// that reads what programs write.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "process/state.hpp"

namespace diapause::process {

// Returns N of /dev/pts/N, or nullopt if the descriptor is no such end.
std::optional<std::uint32_t> number_of_terminal(int master);
// Returns everything about the terminal except its output and its owner.
Result<Terminal> look_at_terminal(int master);
// Returns the output that nobody has read. It can be seen only by reading it, and is therefore
// written once more. This is not possible for a terminal in packet mode.
Result<ByteVector> take_output(int master);

// Returns what was typed and no program has read: lines that are complete, each by itself, then the
// rest. It can be seen only by reading it, and is typed once more. `TypedInput::terminal` is not
// set. A program must have the other end open.
Result<std::vector<TypedInput>> take_input(int master);

// Makes a terminal, and returns the number of its reading end, which the caller closes.
Result<int> open_terminal(const Terminal& from, const std::vector<TypedInput>& typed);
// Returns the other end of the terminal, which the caller closes.
Result<int> open_terminal_again(int master, std::uint32_t flags);

}  // namespace diapause::process
