// Starts a command and leaves it to itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace diapause::sys {

// Starts a command (looked up in PATH) with `input` as its standard input; it gets the other
// streams of this process, and signals from nobody's terminal. Returns its process id.
Result<std::int64_t> start_with_input(const std::vector<std::string>& words,
                                      const std::string& input);
// Returns how the command has ended, as a shell gives it; nullopt while it runs, and 0 if somebody
// else has asked before.
std::optional<int> status_if_ended(std::int64_t process);
void kill_child(std::int64_t process);
// Reads the standard input of this process to its end, and replaces it by /dev/null.
Result<std::string> take_standard_input(std::size_t most_bytes);
// Makes `path` a symbolic link to `target`; an existing one is replaced.
Status make_link(const std::string& target, const std::string& path);
// Renames a file; one that is at the other path is replaced.
Status replace_file(const std::string& from, const std::string& to);
// Removes it if it is empty.
void remove_directory(const std::string& path);
Status change_directory(const std::string& path);
void set_environment(const std::string& name, const std::string& value);

}  // namespace diapause::sys
