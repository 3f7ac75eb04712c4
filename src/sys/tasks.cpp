#include "sys/tasks.hpp"

#include <fmt/core.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>

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

// Returns the letter for the state of a process; 0 if there is no such process.
char state_of(Kernel& kernel, std::int64_t process) {
  const auto text = read_value(kernel, fmt::format("/proc/{}/stat", process));
  if (!text) return 0;
  const std::size_t letter = text->find_first_not_of(' ', text->rfind(')') + 1);
  return letter < text->size() ? (*text)[letter] : '\0';
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
  std::vector<std::int64_t> children;
  const auto threads = threads_of(kernel, process);
  if (!threads) return children;
  for (const std::int64_t thread : *threads) {
    const auto text = read_value(kernel, fmt::format("/proc/{}/task/{}/children", process, thread));
    if (!text) continue;
    std::string_view rest = *text;
    while (!rest.empty()) {
      const std::string_view word = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
      std::int64_t child = 0;
      if (!parse(word, child)) continue;
      const char state = state_of(kernel, child);
      if (state != 0 && state != 'Z' && state != 'X') children.push_back(child);
    }
  }
  return children;
}

std::string program_name(Kernel& kernel, std::int64_t process) {
  return read_value(kernel, fmt::format("/proc/{}/comm", process)).value_or("");
}

Result<std::uint64_t> start_ticks(Kernel& kernel, std::int64_t process) {
  const std::string path = fmt::format("/proc/{}/stat", process);
  DIAPAUSE_TRY_ASSIGN(const std::string text, read_value(kernel, path));
  // The text is "4711 (name, which may contain anything) S ...". The start time is the 20th word
  // behind the name.
  std::string_view rest = text;
  rest.remove_prefix(std::min(rest.size(), rest.rfind(')') + 1));
  for (int word = 1; word < 20; ++word) {
    rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(' ')));
    rest.remove_prefix(std::min(rest.size(), rest.find(' ')));
  }
  rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(' ')));
  std::uint64_t ticks = 0;
  if (!parse(rest.substr(0, rest.find(' ')), ticks))
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
