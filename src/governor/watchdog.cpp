#include "governor/watchdog.hpp"

#include <fmt/core.h>

#include <charconv>
#include <chrono>
#include <limits>
#include <thread>

#include "governor/controls.hpp"
#include "sys/process.hpp"
#include "sys/tasks.hpp"

namespace diapause::governor {
namespace {

constexpr double kStart_s = 10;  // a busy machine may take long to start a process
constexpr std::string_view kLimit = "limit ";
constexpr std::string_view kNoLimit = "no limit";
constexpr double kNever = std::numeric_limits<double>::infinity();

// Reads when the owner's requests end, on the monotonic clock. The last complete line counts.
void read_lines(std::string& text, double& end_s) {
  std::size_t start = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
    const std::string_view line = std::string_view(text).substr(start, end - start);
    start = end + 1;
    if (line == kNoLimit) end_s = kNever;
    double seconds = 0;
    if (!line.starts_with(kLimit)) continue;
    if (std::from_chars(line.data() + kLimit.size(), line.data() + line.size(), seconds).ec ==
        std::errc()) {
      end_s = sys::monotonic_s() + seconds;
    }
  }
  text.erase(0, start);
}

// Repeats an action that may succeed a little later: another job may hold the lock, or a process
// that is about to end may still be in its control group.
Status try_again(const std::function<Result<Controls::Outcome>()>& action) {
  constexpr int kTimes = 500;
  constexpr std::chrono::milliseconds kPause{20};
  for (int i = 1;; ++i) {
    const auto outcome = action();
    if (outcome && outcome->errors.empty()) return {};
    if (i == kTimes) return fail(outcome ? outcome->errors.front() : outcome.error());
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

Result<Watchdog> Watchdog::start(const std::string& command, const std::string& state_path,
                                 const Owner& owner) {
  auto lifeline = sys::Lifeline::start(
      {command, "power", "watch", "--state", state_path, "--owner", to_text(owner)}, kStart_s);
  if (lifeline) return Watchdog(std::move(*lifeline));
  return fail(lifeline.error().code,
              lifeline.error().message + "; governor.watchdog names the command",
              lifeline.error().os_errno);
}

Status Watchdog::limit(double seconds) {
  return lifeline_.tell(fmt::format("{}{:.3f}", kLimit, seconds));
}
Status Watchdog::no_limit() { return lifeline_.tell(std::string(kNoLimit)); }

Status keep_watch(sys::Kernel& kernel, const std::string& state_path,
                  const std::string& owner_text) {
  DIAPAUSE_TRY_ASSIGN(const Owner owner, parse_owner(owner_text));
  DIAPAUSE_TRY_ASSIGN(const std::string boot, sys::boot_id(kernel));
  DIAPAUSE_TRY_ASSIGN(Controls controls, Controls::open(kernel, state_path, boot));
  DIAPAUSE_TRY_ASSIGN(sys::Attendance attendance,
                      sys::Attendance::begin(owner.process, owner.start_ticks));
  std::string lines;
  double end_s = kNever;
  for (;;) {
    const auto news = attendance.wait(end_s - sys::monotonic_s());
    if (!news) {
      // Nobody listens here; what cannot be restored stays in the journal.
      (void)try_again([&] { return controls.want_nothing(owner); });
      end_s = kNever;
      continue;
    }
    lines += news->lines;
    read_lines(lines, end_s);
    if (news->has_ended) break;
  }
  const auto is_owner = [&](const Owner& other) { return other == owner; };
  return try_again([&] { return controls.clean_up(is_owner); });
}

}  // namespace diapause::governor
