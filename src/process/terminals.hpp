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
// This is what waits in a terminal: what programs have written, and what was typed, which is lines
// that are complete, each by itself, then the rest. `TypedInput::terminal` is not set.
struct Unread {
  ByteVector output;
  std::vector<TypedInput> typed;
};
// Input is taken only from a terminal whose other end a program has open.
enum class TerminalInput { is_left, is_taken };
// Returns what nobody has read. It can be seen only by reading it, and is therefore put into the
// terminal once more. This is not possible for a terminal in packet mode.
Result<Unread> take_unread(int master, TerminalInput input);

// Makes a terminal, and returns the number of its reading end, which the caller closes.
Result<int> open_terminal(const Terminal& from, const std::vector<TypedInput>& typed);
// Returns the other end of the terminal, which the caller closes.
Result<int> open_terminal_again(int master, std::uint32_t flags);

}  // namespace diapause::process
