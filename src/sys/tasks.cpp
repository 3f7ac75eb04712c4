#include "sys/tasks.hpp"

#include <fmt/core.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>

#include "sys/process.hpp"
#include "sys/value_file.hpp"

namespace diapause::sys {
namespace {

// This is the struct of linux/sched/types.h, which cannot be included beside sched.h.
struct SchedulingAttributes {
  std::uint32_t size;
  std::uint32_t policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime, deadline, period;
  std::uint32_t utilisation_least, utilisation_most;
};
static_assert(sizeof(SchedulingAttributes) == 56);

template <class Number>
bool parse(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// Takes the first word off `text`.
std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(' ')));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

// Returns the word of /proc/PID/stat that is so many words behind the name of the process. The text
// is "4711 (name, which may contain anything) S ...".
std::string_view word_behind_name(std::string_view text, int number) {
  text.remove_prefix(std::min(text.size(), text.rfind(')') + 1));
  for (int word = 1; word < number; ++word) take_word(text);
  return take_word(text);
}

// Returns the letter for the state of a process; 0 if there is no such process.
char state_of(Kernel& kernel, std::int64_t process) {
  const auto text = read_value(kernel, fmt::format("/proc/{}/stat", process));
  if (!text) return 0;
  const std::string_view letter = word_behind_name(*text, 1);
  return letter.empty() ? '\0' : letter.front();
}

// Returns the ticks that a process and those of its descendants that were waited for have used;
// nothing if it has ended.
std::optional<std::uint64_t> ticks_of(Kernel& kernel, std::int64_t process) {
  constexpr int kTimes[] = {12, 13, 14, 15};  // utime, stime, cutime, cstime
  const auto text = read_value(kernel, fmt::format("/proc/{}/stat", process));
  if (!text) return std::nullopt;
  std::uint64_t sum = 0;
  for (const int number : kTimes) {
    std::uint64_t ticks = 0;
    if (!parse(word_behind_name(*text, number), ticks)) return std::nullopt;
    sum += ticks;
  }
  return sum;
}

// Returns the children of a process, with zombies; nothing if the kernel does not list them.
std::optional<std::vector<std::int64_t>> children_of(Kernel& kernel, std::int64_t process) {
  constexpr std::size_t kMostBytes = 1 << 20;
  std::vector<std::int64_t> children;
  bool has_list = false;
  for (const std::int64_t thread :
       threads_of(kernel, process).value_or(std::vector<std::int64_t>{})) {
    const auto file =
        ValueFile::open(kernel, fmt::format("/proc/{}/task/{}/children", process, thread));
    const auto text = file ? file->text(kMostBytes) : fail(file.error());
    if (!text) continue;  // the thread has ended, or there is no such file
    has_list = true;
    std::string_view rest = *text;
    while (!rest.empty()) {
      std::int64_t child = 0;
      if (parse(take_word(rest), child)) children.push_back(child);
    }
  }
  return has_list ? std::optional(std::move(children)) : std::nullopt;
}

}  // namespace

std::int64_t thread_id() { return ::syscall(SYS_gettid); }

std::vector<std::uint32_t> usable_cpus() {
  // sched_getaffinity refuses a set that is smaller than the kernel's.
  for (int most = CPU_SETSIZE; most <= 64 * CPU_SETSIZE; most *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(most));
    if (set == nullptr) return {};
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(most));
    const bool known = ::sched_getaffinity(0, bytes, set) == 0;
    std::vector<std::uint32_t> cpus;
    for (int cpu = 0; known && cpu < most; ++cpu) {
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set))
        cpus.push_back(static_cast<std::uint32_t>(cpu));
    }
    CPU_FREE(set);
    if (known) return cpus;
  }
  return {};
}

Result<std::vector<std::int64_t>> threads_of(Kernel& kernel, std::int64_t process) {
  DIAPAUSE_TRY_ASSIGN(const auto names, list_names(kernel, fmt::format("/proc/{}/task", process)));
  std::vector<std::int64_t> threads;
  for (const std::string& name : names) {
    std::int64_t thread = 0;
    if (parse(name, thread)) threads.push_back(thread);
  }
  std::ranges::sort(threads);
  return threads;
}

std::vector<std::int64_t> living_children(Kernel& kernel, std::int64_t process) {
  std::vector<std::int64_t> children =
      children_of(kernel, process).value_or(std::vector<std::int64_t>{});
  std::erase_if(children, [&kernel](std::int64_t child) {
    const char state = state_of(kernel, child);
    return state == 0 || state == 'Z' || state == 'X';
  });
  return children;
}

Result<double> processor_s_of_families(Kernel& kernel, const std::vector<std::int64_t>& processes) {
  std::set<std::int64_t> seen(processes.begin(), processes.end());
  std::vector<std::int64_t> open(processes);
  std::uint64_t ticks = 0;
  while (!open.empty()) {
    const std::int64_t process = open.back();
    open.pop_back();
    const auto used = ticks_of(kernel, process);
    const auto children = children_of(kernel, process);
    const bool is_root = std::ranges::find(processes, process) != processes.end();
    if (is_root && (!used || !children)) {
      return fail(Code::not_found, fmt::format("the processor time of process {} and its children "
                                               "cannot be seen",
                                               process));
    }
    ticks += used.value_or(0);
    for (const std::int64_t child : children.value_or(std::vector<std::int64_t>{})) {
      if (seen.insert(child).second) open.push_back(child);
    }
  }
  return static_cast<double>(ticks) / ticks_per_second();
}

std::string program_name(Kernel& kernel, std::int64_t process) {
  return read_value(kernel, fmt::format("/proc/{}/comm", process)).value_or("");
}

Result<std::uint64_t> start_ticks(Kernel& kernel, std::int64_t process) {
  const std::string path = fmt::format("/proc/{}/stat", process);
  DIAPAUSE_TRY_ASSIGN(const std::string text, read_value(kernel, path));
  std::uint64_t ticks = 0;
  if (!parse(word_behind_name(text, 20), ticks))
    return fail(Code::io, path + " does not say when it started");
  return ticks;
}

Result<std::string> boot_id(Kernel& kernel) {
  return read_value(kernel, "/proc/sys/kernel/random/boot_id");
}

Result<std::uint32_t> utilisation_cap(std::int64_t thread) {
  SchedulingAttributes attributes{};
  // A kernel without caps does not fill the last two fields.
  attributes.utilisation_most = UINT32_MAX;
  if (::syscall(SYS_sched_getattr, thread, &attributes, sizeof attributes, 0) != 0) {
    return fail(
        os_error(fmt::format("cannot read the utilisation cap of thread {}", thread), errno));
  }
  if (attributes.size < sizeof attributes)
    return fail(Code::io, "the kernel has no utilisation cap");
  return attributes.utilisation_most;
}

Status cap_utilisation(std::int64_t thread, std::uint32_t most) {
  SchedulingAttributes attributes{};
  attributes.size = sizeof attributes;
  attributes.flags = SCHED_FLAG_KEEP_ALL | SCHED_FLAG_UTIL_CLAMP_MAX;
  attributes.utilisation_most = most;
  if (::syscall(SYS_sched_setattr, thread, &attributes, 0) == 0) return {};
  const int error = errno;
  const std::string what = fmt::format("cannot cap the utilisation of thread {}", thread);
  if (error == EOPNOTSUPP)
    return fail(Code::io, what + ": the kernel was built without CONFIG_UCLAMP_TASK", error);
  return fail(os_error(what, error));
}

}  // namespace diapause::sys
