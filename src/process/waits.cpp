#include "process/waits.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>

#include <algorithm>
#include <ctime>

#include "process/trace.hpp"

namespace diapause::process {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000, kMillisecond = 1'000'000;

struct TimedWait {
  std::int64_t call;
  std::size_t argument;
  bool is_in_memory;  // the argument is the address of a timespec; else a number of milliseconds
};
constexpr TimedWait kTimedWaits[] = {{SYS_epoll_wait, 3, false},
                                     {SYS_epoll_pwait, 3, false},
                                     {SYS_epoll_pwait2, 3, true},
                                     {SYS_rt_sigtimedwait, 2, true},
                                     {SYS_semtimedop, 3, true}};

std::uint64_t less(std::uint64_t length_ns, std::uint64_t waited_ns) {
  return length_ns > waited_ns ? length_ns - waited_ns : 0;
}

// Returns the time that an argument of a call leads to, in nanoseconds.
std::optional<std::uint64_t> time_in_memory(pid_t process, const Registers& registers,
                                            std::size_t argument) {
  timespec length{};
  if (!read_memory(process, argument_of(registers, argument),
                   std::as_writable_bytes(std::span(&length, 1))))
    return std::nullopt;
  return static_cast<std::uint64_t>(length.tv_sec) * kSecond +
         static_cast<std::uint64_t>(length.tv_nsec);
}

std::optional<Rest> rest_in_memory(pid_t process, const TimedWait& wait, const Registers& registers,
                                   std::uint64_t waited_ns) {
  if (argument_of(registers, wait.argument) == 0) return std::nullopt;
  const auto length_ns = time_in_memory(process, registers, wait.argument);
  if (!length_ns) return std::nullopt;
  const std::uint64_t left_ns = less(*length_ns, waited_ns);
  const timespec left{static_cast<time_t>(left_ns / kSecond), static_cast<long>(left_ns % kSecond)};
  // The timespec of the program is not changed: it may be constant, or be used for another call.
  const std::uint64_t place = below_stack(registers, sizeof left);
  if (!write_memory(process, place, as_byte_view(left))) return std::nullopt;
  return Rest{wait.argument, place};
}

}  // namespace

std::optional<Rest> rest_of_wait(pid_t process, std::int64_t call, const Registers& registers,
                                 std::uint64_t waited_ns) {
  const auto wait = std::ranges::find(kTimedWaits, call, &TimedWait::call);
  if (wait == std::end(kTimedWaits)) return std::nullopt;
  if (wait->is_in_memory) return rest_in_memory(process, *wait, registers, waited_ns);
  const auto milliseconds = static_cast<std::int32_t>(argument_of(registers, wait->argument));
  if (milliseconds < 0) return std::nullopt;
  const std::uint64_t left_ns =
      less(static_cast<std::uint64_t>(milliseconds) * kMillisecond, waited_ns);
  return Rest{wait->argument, (left_ns + kMillisecond - 1) / kMillisecond};
}

std::optional<std::uint64_t> length_of_call(pid_t process, std::int64_t call,
                                            const Registers& registers) {
  switch (call) {
    case SYS_nanosleep:
      return time_in_memory(process, registers, 0);
    case SYS_clock_nanosleep:
      return time_in_memory(process, registers, 2);
    case SYS_poll: {
      const auto milliseconds = static_cast<std::int32_t>(argument_of(registers, 2));
      return milliseconds < 0 ? kForever : static_cast<std::uint64_t>(milliseconds) * kMillisecond;
    }
    case SYS_futex:
      // Only FUTEX_WAIT takes a length of time. Other operations name the time at which they end,
      // and are made again unchanged.
      return (argument_of(registers, 1) & FUTEX_CMD_MASK) == FUTEX_WAIT
                 ? time_in_memory(process, registers, 3)
                 : kForever;
    default:
      return std::nullopt;
  }
}

}  // namespace diapause::process
