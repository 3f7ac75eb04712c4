// Dumps and restores the timers that a process has made by timer_create, with the ids by which it
// knows them.
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstring>
#include <ctime>

#include "process/dump_parts.hpp"
#include "process/restore_parts.hpp"

namespace diapause::process {
namespace {

constexpr int kRestoreIds = 77;  // PR_TIMER_CREATE_RESTORE_IDS, since Linux 6.16
constexpr std::uint64_t kSecond_ns = 1'000'000'000;

// This is the kernel's struct sigevent. The one of the C library hides the thread in a union.
struct Event {
  std::uint64_t value = 0;
  std::uint32_t signal = 0, notification = 0, thread = 0;
  std::array<std::uint32_t, 11> unused{};
};
static_assert(sizeof(Event) == 64);

std::uint64_t to_ns(const timespec& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * kSecond_ns +
         static_cast<std::uint64_t>(time.tv_nsec);
}

timespec to_time(std::uint64_t nanoseconds) {
  return {static_cast<time_t>(nanoseconds / kSecond_ns),
          static_cast<long>(nanoseconds % kSecond_ns)};
}

template <class T>
T number_of(std::string_view text, int base = 10) {
  T number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, base);
  return number;
}

std::string_view behind(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  return at == std::string_view::npos ? std::string_view{} : text.substr(at + mark.size());
}

// Parses what /proc/<pid>/timers says of one timer, after "ID: ":
//   "0\nsignal: 34/00007ffc7ffe4000\nnotify: signal/tid.2634\nClockID: 1\n"
// The thread is named by its id in the PID namespace of this process.
Timer parse_timer(std::string_view text, const FrozenProcess& frozen) {
  Timer timer;
  timer.process = frozen.status.id;
  timer.number = number_of<std::uint32_t>(text);
  const std::string_view signal = behind(text, "signal: ");
  timer.signal = number_of<std::uint32_t>(signal);
  timer.value = number_of<std::uint64_t>(behind(signal, "/"), 16);
  const std::string_view notification = behind(text, "notify: ");
  if (notification.starts_with("none")) timer.notification = SIGEV_NONE;
  if (notification.starts_with("thread")) timer.notification = SIGEV_THREAD;
  if (const std::string_view thread =
          behind(notification.substr(0, notification.find('\n')), "/tid.");
      !thread.empty()) {
    const auto known = std::ranges::find(frozen.threads, number_of<pid_t>(thread),
                                         [](const FrozenThread& one) { return one.name.here; });
    timer.notification |= SIGEV_THREAD_ID;
    if (known != frozen.threads.end()) timer.thread = known->name.thread;
  }
  timer.clock = static_cast<std::uint32_t>(number_of<std::int32_t>(behind(text, "ClockID: ")));
  return timer;
}

// Makes a timer that has the next free id. Returns that id.
Result<std::uint32_t> make_timer(const RestoreWork& work, const ThreadName& thread,
                                 const Timer& timer) {
  struct {
    Event event;
    std::uint32_t number;
  } argument{};
  argument.event = {timer.value, timer.signal, timer.notification, timer.thread, {}};
  argument.number = timer.number;
  const std::uint64_t room = work.calls.room(),
                      number = room + offsetof(decltype(argument), number);
  const auto clock = static_cast<std::uint64_t>(static_cast<std::int32_t>(timer.clock));
  DIAPAUSE_TRY(call_with(work, thread, as_byte_view(argument),
                         {SYS_timer_create, {clock, room, number}, 0}));
  std::uint32_t made = 0;
  DIAPAUSE_TRY(read_memory(thread.here, number, std::as_writable_bytes(std::span(&made, 1))));
  return made;
}

// Makes a timer with its id. A kernel that cannot be told the id gives ids in rising order, so
// timers are made and deleted until the id is reached.
Status make_timer_with_id(const RestoreWork& work, const ThreadName& thread, const Timer& timer) {
  constexpr int kMostTries = 1 << 16;
  for (int i = 0; i < kMostTries; ++i) {
    DIAPAUSE_TRY_ASSIGN(const std::uint32_t made, make_timer(work, thread, timer));
    if (made == timer.number) return {};
    DIAPAUSE_TRY(work.calls.one(thread, {SYS_timer_delete, {made}, 0}));
    if (made > timer.number) break;
  }
  return fail(Code::mismatch, fmt::format("the kernel gives timer {} of process {} another id",
                                          timer.number, timer.process));
}

Status start_timer(const RestoreWork& work, const ThreadName& thread, const Timer& timer) {
  if (timer.left_ns == 0 && timer.period_ns == 0) return {};
  // A timer with a period and no time left has expired: it goes on with its next period.
  const itimerspec setting{to_time(timer.period_ns),
                           to_time(std::max<std::uint64_t>(timer.left_ns, 1))};
  const Call start{SYS_timer_settime, {timer.number, 0, work.calls.room(), 0}, 0};
  return call_with(work, thread, as_byte_view(setting), start).map([](std::uint64_t) {});
}

}  // namespace

Status dump_timers(DumpWork& work, const FrozenProcess& frozen) {
  const auto text = read_proc(fmt::format("/proc/{}/timers", frozen.here));
  if (!text) return {};  // this kernel does not tell
  constexpr std::string_view kBegin = "ID: ";
  std::string_view rest = *text;
  while (rest.starts_with(kBegin)) {
    const std::size_t end = rest.find("\nID: ");
    Timer timer = parse_timer(rest.substr(kBegin.size(), end), frozen);
    const std::uint64_t room = frozen.calls->room();
    DIAPAUSE_TRY(
        frozen.calls->one(frozen.leader().name, {SYS_timer_gettime, {timer.number, room}, 0}));
    itimerspec now{};
    DIAPAUSE_TRY(read_memory(frozen.here, room, std::as_writable_bytes(std::span(&now, 1))));
    timer.left_ns = to_ns(now.it_value);
    timer.period_ns = to_ns(now.it_interval);
    work.result.job.timers.push_back(timer);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  }
  return {};
}

// A timer of the processor time of a thread counts that of the thread that makes it, which is the
// one that it signals as a rule.
Status restore_timers(const RestoreWork& work, const Made& made) {
  std::vector<const Timer*> timers;
  for (const Timer& one : work.job.timers) {
    if (one.process == made.stored->id) timers.push_back(&one);
  }
  if (timers.empty()) return {};
  std::ranges::sort(timers, {}, [](const Timer* one) { return one->number; });
  std::vector<Call> begin = {{SYS_prctl | kMayFail, {kRestoreIds, 1}, 0}};
  DIAPAUSE_TRY(work.calls.run(made.leader(), begin));
  for (const Timer* one : timers) {
    const auto known = std::ranges::find(made.threads, one->thread, &ThreadName::thread);
    const ThreadName& thread = known == made.threads.end() ? made.leader() : *known;
    DIAPAUSE_TRY(make_timer_with_id(work, thread, *one));
    DIAPAUSE_TRY(start_timer(work, thread, *one));
  }
  std::vector<Call> end = {{SYS_prctl | kMayFail, {kRestoreIds, 0}, 0}};
  return work.calls.run(made.leader(), end);
}

}  // namespace diapause::process
