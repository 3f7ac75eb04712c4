// Knows how long calls wait, and shortens them. If a thread is stopped in such a call, the call is
// made again, and must then wait only for the rest of its time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "process/x86_64/machine.hpp"

namespace diapause::process {

// Names the argument of the call that changes, and its new value.
struct Rest {
  std::size_t argument = 0;
  std::uint64_t value = 0;
};

// Returns how the call has to be made again after it has waited for `waited_ns`. A time that is
// passed in memory is written below the part of the stack that the thread uses. Returns nullopt if
// the call waits for ever, or if its time cannot be changed.
std::optional<Rest> rest_of_wait(pid_t process, std::int64_t call, const Registers& registers,
                                 std::uint64_t waited_ns);

inline constexpr std::uint64_t kForever = ~std::uint64_t{0};

// Returns how many nanoseconds a call until a time that only the kernel knows was to last according
// to its arguments, or kForever if it was to last until something happens. Returns nullopt if that
// cannot be found out.
std::optional<std::uint64_t> length_of_call(pid_t process, std::int64_t call,
                                            const Registers& registers);

}  // namespace diapause::process
