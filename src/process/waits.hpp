// Calls that wait for something, or for a time, and that have to be made again because we have stopped their thread:
// they are to wait for the rest of that time only.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "process/x86_64/machine.hpp"

namespace diapause::process {

// Which argument of the call is to be another.
struct Rest {
  std::size_t argument = 0;
  std::uint64_t value = 0;
};

// What to make the call again with, after it has waited for `waited_ns`. A length that is handed over in memory is
// written below what the thread uses of its stack. nullopt: the call waits for ever, or its length cannot be changed.
std::optional<Rest> rest_of_wait(pid_t process, std::int64_t call, const Registers& registers, std::uint64_t waited_ns);

}  // namespace diapause::process
