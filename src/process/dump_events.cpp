// Dumps descriptors that tell of events: counters, timers, signals, watched files and processes,
// and sets of them.
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <map>

#include "process/dump_parts.hpp"

namespace diapause::process {
namespace {

// Returns the nanoseconds of a time such as "it_value: (3, 500)", which holds seconds and
// nanoseconds. Returns 0 if there is no such line.
std::uint64_t time_in(const Found& found, std::string_view key) {
  const std::vector<std::string> values = values_in(found.details, key);
  if (values.empty()) return 0;
  std::uint64_t seconds = 0, nanoseconds = 0;
  const std::string& text = values.front();
  const std::size_t comma = text.find(", ");
  if (comma == std::string::npos) return 0;
  std::from_chars(text.data() + 1, text.data() + comma, seconds);
  std::from_chars(text.data() + comma + 2, text.data() + text.size(), nanoseconds);
  return seconds * 1'000'000'000 + nanoseconds;
}

// Parses what the fdinfo of an epoll set says of one watched file, for example
// "       5 events:       19 data:                5  pos:0 ino:61af sdev:7".
Watched parse_watched(const std::string& line) {
  const auto number_behind = [&](std::string_view key, int base) {
    const std::size_t at = key.empty() ? 0 : line.find(key);
    std::uint64_t number = 0;
    if (at == std::string::npos) return number;
    const std::size_t begin = std::min(line.find_first_not_of(' ', at + key.size()), line.size());
    std::from_chars(line.data() + begin, line.data() + line.size(), number, base);
    return number;
  };
  return {static_cast<std::uint32_t>(number_behind("", 10)),
          static_cast<std::uint32_t>(number_behind("events:", 16)), number_behind("data:", 16)};
}

}  // namespace

Result<bool> describe_event_source(DumpWork& work, const FrozenProcess& frozen, const Found& found,
                                   Description& to) {
  if (found.link == "anon_inode:[eventfd]") {
    to.kind = DescriptionKind::counter;
    to.count = found.number_of("eventfd-count", 16);
    to.is_semaphore = found.number_of("eventfd-semaphore", 10) != 0;
  } else if (found.link == "anon_inode:[timerfd]") {
    to.kind = DescriptionKind::timer;
    to.count = found.number_of("clockid", 10);
    to.left_ns = time_in(found, "it_value");
    to.period_ns = time_in(found, "it_interval");
    to.bytes = found.number_of("ticks", 10);
    return to.count <= 1 || to.count == CLOCK_BOOTTIME;
  } else if (found.link == "anon_inode:[signalfd]") {
    to.kind = DescriptionKind::signals;
    to.count = found.number_of("sigmask", 16);
  } else if (found.link == "anon_inode:[eventpoll]") {
    to.kind = DescriptionKind::poll;
    for (const std::string& line : values_in(found.details, "tfd"))
      to.watched.push_back(parse_watched(line));
  } else if (found.link == "anon_inode:inotify" || found.link == "anon_inode:[inotify]") {
    to.kind = DescriptionKind::notifications;
    DIAPAUSE_TRY(dump_watches(work, frozen, found));
  } else {
    return false;
  }
  return true;
}

// The last id of "NSpid" is the one by which the job knows the process.
Status describe_pidfd(DumpWork& work, const FrozenProcess& frozen, const Found& found,
                      Description& to) {
  to.kind = DescriptionKind::process;
  const std::vector<std::string> ids = values_in(found.details, "NSpid");
  if (!ids.empty()) {
    const std::string& text = ids.front();
    const std::size_t begin = text.find_last_of(" \t") + 1;
    std::from_chars(text.data() + begin, text.data() + text.size(), to.which);
  }
  const bool is_of_thread = (to.flags & O_EXCL) != 0;  // PIDFD_THREAD
  if (to.which > 1 && !is_of_thread) return {};
  work.refuse_for_now(frozen.status,
                      fmt::format("has descriptor {} ({}) of {}", found.number, found.link,
                                  is_of_thread ? "a thread" : "a process that is gone"));
  return {};
}

// Refuses epoll sets that a restart could not make again. A set keeps a watched file under the
// number of the descriptor by which it was added, even if that descriptor was closed or is another
// file by now. A restart adds the file by that number, in the first process that has the set.
void look_at_sets(DumpWork& work) {
  const Job& job = work.result.job;
  for (std::uint32_t index = 0; index < job.descriptions.size(); ++index) {
    const std::vector<Watched>& watched = job.descriptions[index].watched;
    if (watched.empty()) continue;
    const Descriptor* set = nullptr;
    const auto process = std::ranges::find_if(job.processes, [&](const Process& one) {
      const auto known = std::ranges::find(one.descriptors, index, &Descriptor::description);
      if (known != one.descriptors.end()) set = &*known;
      return known != one.descriptors.end();
    });
    if (process == job.processes.end()) continue;
    const auto frozen = std::ranges::find(work.frozen.processes(), process->id,
                                          [](const FrozenProcess& one) { return one.status.id; });
    // This counts the entries seen so far with the same descriptor number.
    std::map<std::uint32_t, std::uint32_t> count;
    for (const Watched& one : watched) {
      kcmp_epoll_slot slot{set->number, one.number, count[one.number]++};
      const long differs =
          ::syscall(SYS_kcmp, frozen->here, frozen->here, KCMP_EPOLL_TFD, one.number, &slot);
      if (differs == 0 || (differs < 0 && errno == EOPNOTSUPP)) continue;
      work.refuse(
          frozen->status,
          fmt::format("has descriptor {} (anon_inode:[eventpoll]), which watches what was its "
                      "descriptor {} and is not any more",
                      set->number, one.number));
    }
  }
}

}  // namespace diapause::process
