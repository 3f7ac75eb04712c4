#include "process/clocks.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <ctime>
#include <sstream>

#include "process/proc.hpp"

namespace diapause::process {
namespace {

constexpr std::int64_t kNsOfSecond = 1'000'000'000;

// What the clocks of a process are ahead of those of the machine.
struct Offsets {
  std::int64_t monotonic_ns = 0, since_boot_ns = 0;
};

std::int64_t now_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * kNsOfSecond + now.tv_nsec;
}

std::string path_of(pid_t process) { return fmt::format("/proc/{}/timens_offsets", process); }

// A kernel without such offsets has no such file.
Offsets offsets_of(pid_t process) {
  Offsets offsets;
  std::istringstream lines(read_proc(path_of(process)).value_or(""));
  std::string clock;
  for (std::int64_t seconds = 0, rest_ns = 0; lines >> clock >> seconds >> rest_ns;) {
    if (clock == "monotonic") offsets.monotonic_ns = seconds * kNsOfSecond + rest_ns;
    if (clock == "boottime") offsets.since_boot_ns = seconds * kNsOfSecond + rest_ns;
  }
  return offsets;
}

std::string line_of(const char* clock, std::int64_t offset_ns) {
  std::int64_t seconds = offset_ns / kNsOfSecond, rest_ns = offset_ns % kNsOfSecond;
  if (rest_ns < 0) {
    --seconds;
    rest_ns += kNsOfSecond;
  }
  return fmt::format("{} {} {}\n", clock, seconds, rest_ns);
}

}  // namespace

Clocks clocks_of(pid_t process) {
  const Offsets own = offsets_of(::getpid()), its = offsets_of(process);
  return {
      static_cast<std::uint64_t>(now_ns(CLOCK_MONOTONIC) + its.monotonic_ns - own.monotonic_ns),
      static_cast<std::uint64_t>(now_ns(CLOCK_BOOTTIME) + its.since_boot_ns - own.since_boot_ns)};
}

Status set_clocks(pid_t process, const Clocks& clocks) {
  const Offsets own = offsets_of(::getpid());
  const std::string text = line_of("monotonic", static_cast<std::int64_t>(clocks.monotonic_ns) -
                                                    now_ns(CLOCK_MONOTONIC) + own.monotonic_ns) +
                           line_of("boottime", static_cast<std::int64_t>(clocks.since_boot_ns) -
                                                   now_ns(CLOCK_BOOTTIME) + own.since_boot_ns);
  return write_proc(path_of(process), text);
}

}  // namespace diapause::process
