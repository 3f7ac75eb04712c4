// Tells facts about this process and machine.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace diapause::sys {

std::string host_name();
// Fails if the directory has been removed since this process came into it.
Result<std::string> current_directory();
// Returns a path that begins at the root. Another one begins at the working directory.
Result<std::string> absolute_path(const std::string& path);
// Returns the path of the program that this process runs, with links followed; empty if the kernel
// does not tell.
std::string own_program();
std::uint32_t user_id();
std::int64_t process_id();
std::uint64_t unix_time_ns();
double monotonic_s();

// Returns the largest size that a file may reach here (ulimit -f). Writing more ends the process.
std::uint64_t file_size_limit();

// Returns the processor time of the calling thread so far, in seconds.
double processor_s();
// Returns the processor time that all threads of a process have used so far, in seconds, without
// that of the processes that it has started. Fails with Code::not_found if there is no such
// process, or if it cannot be seen from here.
Result<double> processor_s_of(std::int64_t process);
// Returns how many ticks, the unit of /proc/stat, a second has.
double ticks_per_second();
struct ProcessorTime {
  double had_s = 0;
  double waited_s = 0;  // time spent runnable without a processor; 0 where the kernel does not tell
};
ProcessorTime processor_time();

Status random_bytes(MutableBytes out);
std::vector<std::pair<std::string, std::string>> environment();
// Lets a list of the environment, with colons between its words, begin with `word`. It is for a
// process with one thread.
void put_first_in_list(const std::string& variable, const std::string& word);
bool is_terminal(std::FILE* stream);
// Returns whether the reader at the other end of a pipe or connection is gone.
bool is_deserted(std::FILE* stream);

}  // namespace diapause::sys
