// Facts about this process and machine.
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
std::string current_directory();
// Path of the program that this process runs, links followed; empty if the kernel does not tell.
std::string own_program();
std::uint32_t user_id();
std::int64_t process_id();
std::uint64_t unix_time_ns();
double monotonic_s();

// The largest size that a file may get here (ulimit -f); to write more ends the process.
std::uint64_t file_size_limit();

// What the calling thread has had of processors, so far.
double processor_s();
struct ProcessorTime {
  double had_s = 0;
  double waited_s = 0;  // for a processor, while it could have run; 0 where the kernel does not tell
};
ProcessorTime processor_time();

Status random_bytes(MutableBytes out);
std::vector<std::pair<std::string, std::string>> environment();
bool is_terminal(std::FILE* stream);

}  // namespace diapause::sys
