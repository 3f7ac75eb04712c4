#include "process/dump.hpp"

#include <fmt/core.h>
#include <linux/kcmp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "process/dump_parts.hpp"

namespace diapause::process {
namespace {

constexpr std::size_t kActions = 64;
constexpr std::uint64_t kMaskBytes = 8;  // of the kernel's sigset_t

template <class T>
T read_result(ByteView bytes, std::uint64_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// What only the process itself can ask.
Status ask_process(FrozenProcess& frozen, Process& process) {
  const std::uint64_t room = frozen.calls->room();
  const std::uint64_t actions = room, intervals = actions + kActions * sizeof(SignalAction);
  const std::uint64_t death = intervals + 3 * sizeof(itimerval), subreaper = death + 8;
  std::vector<Call> calls;
  for (std::uint64_t i = 0; i < kActions; ++i) {
    calls.push_back({SYS_rt_sigaction | kMayFail, {i + 1, 0, actions + i * sizeof(SignalAction), kMaskBytes}, 0});
  }
  for (std::uint64_t i = 0; i < 3; ++i) {
    calls.push_back({SYS_getitimer, {i, intervals + i * sizeof(itimerval)}, 0});
  }
  calls.push_back({SYS_prctl, {PR_GET_PDEATHSIG, death}, 0});
  calls.push_back({SYS_prctl, {PR_GET_CHILD_SUBREAPER, subreaper}, 0});
  calls.push_back({SYS_brk, {0}, 0});
  calls.push_back({SYS_prctl, {PR_GET_DUMPABLE}, 0});
  calls.push_back({SYS_personality, {0xffffffff}, 0});
  DIAPAUSE_TRY(frozen.calls->run(frozen.leader().name, calls));
  ByteVector answers(subreaper + 8 - room);
  DIAPAUSE_TRY(read_memory(frozen.here, room, answers));
  for (std::size_t i = 0; i < kActions; ++i) {
    process.actions[i] = read_result<SignalAction>(answers, i * sizeof(SignalAction));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const auto timer = read_result<itimerval>(answers, intervals - room + i * sizeof(itimerval));
    process.intervals[i] = {
        static_cast<std::uint64_t>(timer.it_value.tv_sec * 1'000'000 + timer.it_value.tv_usec),
        static_cast<std::uint64_t>(timer.it_interval.tv_sec * 1'000'000 + timer.it_interval.tv_usec)};
  }
  process.death_signal = read_result<std::uint32_t>(answers, death - room);
  process.subreaper = read_result<std::uint32_t>(answers, subreaper - room);
  const std::size_t last = calls.size();
  process.map.brk = static_cast<std::uint64_t>(calls[last - 3].result);
  process.dumpable = static_cast<std::uint32_t>(calls[last - 2].result);
  process.personality = static_cast<std::uint32_t>(calls[last - 1].result);
  return {};
}

Status read_map(pid_t here, MemoryMap& map) {
  DIAPAUSE_TRY_ASSIGN(const StatFields stat, StatFields::of(here));
  map.start_code = stat.number(26);
  map.end_code = stat.number(27);
  map.start_stack = stat.number(28);
  map.start_data = stat.number(45);
  map.end_data = stat.number(46);
  map.start_brk = stat.number(47);
  map.arg_start = stat.number(48);
  map.arg_end = stat.number(49);
  map.env_start = stat.number(50);
  map.env_end = stat.number(51);
  DIAPAUSE_TRY_ASSIGN(const std::string auxiliary, read_proc(fmt::format("/proc/{}/auxv", here)));
  const ByteView bytes = as_byte_view(auxiliary);
  map.auxiliary.assign(bytes.begin(), bytes.end());
  return {};
}

Status read_limits(pid_t here, Process& process) {
  for (std::size_t i = 0; i < process.limits.size(); ++i) {
    rlimit limit{};
    if (::prlimit(here, static_cast<__rlimit_resource>(i), nullptr, &limit) != 0) {
      return fail(os_error(fmt::format("asking for the limits of process {}", process.id), errno));
    }
    process.limits[i] = {limit.rlim_cur, limit.rlim_max};
  }
  return {};
}

// What would be restored wrongly if it were passed over.
void refuse_what_is_strange(DumpWork& work, const FrozenProcess& frozen) {
  const std::string directory = fmt::format("/proc/{}", frozen.here);
  if (frozen.status.seccomp != 0) work.refuse(frozen.status, "has a seccomp filter");
  const auto timers = read_proc(directory + "/timers");
  if (timers && !timers->empty()) work.refuse(frozen.status, "has timers of timer_create");
  const auto root = read_link(directory + "/root");
  const auto own_root = read_link("/proc/self/root");
  if (root && own_root && *root != *own_root) work.refuse(frozen.status, "has another root directory: " + *root);
  for (const char* space : {"user", "ipc", "mnt", "net", "uts", "cgroup"}) {
    const auto its = read_link(fmt::format("{}/ns/{}", directory, space));
    const auto ours = read_link(fmt::format("/proc/{}/ns/{}", work.frozen.processes().front().here, space));
    if (its && ours && *its != *ours) work.refuse(frozen.status, fmt::format("has a {} namespace of its own", space));
  }
}

Status dump_process(DumpWork& work, FrozenProcess& frozen) {
  const std::string directory = fmt::format("/proc/{}", frozen.here);
  Process& process = work.result.job.processes.emplace_back();
  process.id = frozen.status.id;
  process.group = frozen.status.group;
  process.session = frozen.status.session;
  process.mask = frozen.status.mask;
  process.no_new_privileges = frozen.status.no_new_privileges;
  process.inheritable = frozen.status.inheritable;
  process.permitted = frozen.status.permitted;
  process.effective = frozen.status.effective;
  DIAPAUSE_TRY_ASSIGN(const ProcStatus parent, status_of(fmt::format("/proc/{}", frozen.status.parent_here)));
  process.parent = parent.id;
  DIAPAUSE_TRY_ASSIGN(process.program, read_link(directory + "/exe"));
  DIAPAUSE_TRY_ASSIGN(process.directory, read_link(directory + "/cwd"));
  refuse_what_is_strange(work, frozen);
  DIAPAUSE_TRY(read_limits(frozen.here, process));
  DIAPAUSE_TRY(read_map(frozen.here, process.map));
  // Before anything of ours is in its memory.
  DIAPAUSE_TRY(dump_memory(work, frozen, process));
  DIAPAUSE_TRY_ASSIGN(process.waiting_signals, waiting_signals_of(frozen.here, Queue::process));
  DIAPAUSE_TRY(dump_descriptors(work, frozen, process));
  DIAPAUSE_TRY(work.frozen.plant(frozen));
  DIAPAUSE_TRY(ask_process(frozen, process));
  return dump_threads(work, frozen, process);
}

// Those of process 1 it buries itself.
Status dump_zombies(DumpWork& work) {
  for (const Zombie& zombie : work.frozen.zombies()) {
    DIAPAUSE_TRY_ASSIGN(const ProcStatus parent, status_of(fmt::format("/proc/{}", zombie.status.parent_here)));
    if (parent.id == 1) continue;
    DIAPAUSE_TRY_ASSIGN(const StatFields stat, StatFields::of(zombie.here));
    constexpr std::size_t kExitCode = 52;
    Process& process = work.result.job.processes.emplace_back();
    process.id = zombie.status.id;
    process.parent = parent.id;
    process.group = zombie.status.group;
    process.session = zombie.status.session;
    process.has_ended = true;
    process.exit_status = static_cast<std::uint32_t>(stat.number(kExitCode));
    process.threads.emplace_back().id = process.id;
  }
  return {};
}

// Parents before their children; whose parent is process 1 comes first.
void sort_by_descent(std::vector<Process>& processes) {
  std::vector<Process> sorted;
  std::vector<std::uint32_t> done = {1};
  while (!processes.empty()) {
    const auto next = std::ranges::find_if(
        processes, [&](const Process& one) { return std::ranges::find(done, one.parent) != done.end(); });
    if (next == processes.end()) break;
    done.push_back(next->id);
    sorted.push_back(std::move(*next));
    processes.erase(next);
  }
  processes.insert(processes.begin(), std::make_move_iterator(sorted.begin()), std::make_move_iterator(sorted.end()));
}

}  // namespace

Result<Dump> dump(FrozenJob& frozen, pid_t standard, std::uint32_t command) {
  DumpWork work{frozen, standard};
  Job& job = work.result.job;
  job.machine = "x86_64";
  job.command = command;
  job.monotonic_ns = frozen.monotonic_ns();
  if (frozen.processes().empty()) return fail(Code::not_found, "the job has no process that runs");
  for (FrozenProcess& process : frozen.processes()) DIAPAUSE_TRY(dump_process(work, process));
  DIAPAUSE_TRY(look_at_segments(work));
  DIAPAUSE_TRY(dump_zombies(work));
  DIAPAUSE_TRY(dump_channels(work));
  DIAPAUSE_TRY(connect_sockets(work));
  DIAPAUSE_TRY(look_at_terminals(work));
  if (!work.refusals.empty()) {
    std::string text = "the job holds what cannot be restored, and runs on without a checkpoint:";
    for (const std::string& one : work.refusals) text += "\n  " + one;
    return fail(work.is_of_the_moment ? Code::again : Code::argument, text);
  }
  DIAPAUSE_TRY(take_down_sockets(work));
  DIAPAUSE_TRY(take_down_terminals(work));
  sort_by_descent(job.processes);
  return std::move(work.result);
}

}  // namespace diapause::process
