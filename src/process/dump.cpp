#include "process/dump.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/kcmp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <set>

#include "process/clocks.hpp"
#include "process/dump_parts.hpp"
#include "process/families.hpp"
#include "process/kernel_code.hpp"
#include "process/x86_64/vdso.hpp"
#include "sys/network.hpp"
#include "sys/process.hpp"

namespace diapause::process {
namespace {

constexpr std::size_t kActions = 64;
constexpr std::uint64_t kMaskBytes = 8;  // size of the kernel's sigset_t

template <class T>
T read_result(ByteView bytes, std::uint64_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Makes the process itself do the system calls for what no other process can ask the kernel: signal
// actions, interval timers, the death signal, the subreaper and dumpable settings, the end of the
// heap, and the personality.
Status ask_process(FrozenProcess& frozen, Process& process) {
  const std::uint64_t room = frozen.calls->room();
  const std::uint64_t actions = room, intervals = actions + kActions * sizeof(SignalAction);
  const std::uint64_t death = intervals + 3 * sizeof(itimerval), subreaper = death + 8;
  std::vector<Call> calls;
  for (std::uint64_t i = 0; i < kActions; ++i) {
    calls.push_back({SYS_rt_sigaction | kMayFail,
                     {i + 1, 0, actions + i * sizeof(SignalAction), kMaskBytes},
                     0});
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
        static_cast<std::uint64_t>(timer.it_interval.tv_sec * 1'000'000 +
                                   timer.it_interval.tv_usec)};
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

// Process 1 gets SIGCHLD from all its children.
Status note_end_signal(pid_t here, const Process& process, Job& job) {
  constexpr std::size_t kExitSignal = 38;
  DIAPAUSE_TRY_ASSIGN(const StatFields stat, StatFields::of(here));
  const auto signal = static_cast<std::uint32_t>(stat.number(kExitSignal));
  if (process.parent != 1 && signal != SIGCHLD) job.end_signals.push_back({process.id, signal});
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

// Refuses properties of a process that would be restored wrongly if the dump ignored them.
void refuse_what_is_strange(DumpWork& work, const FrozenProcess& frozen) {
  const std::string directory = fmt::format("/proc/{}", frozen.here);
  if (frozen.status.filters != work.filters) work.refuse(frozen.status, "has a seccomp filter");
  struct stat directory_now {
  }, directory_by_name{};
  const auto its_directory = read_link(directory + "/cwd");
  const bool is_directory_there = its_directory &&
                                  ::stat((directory + "/cwd").c_str(), &directory_now) == 0 &&
                                  ::stat(its_directory->c_str(), &directory_by_name) == 0 &&
                                  directory_now.st_dev == directory_by_name.st_dev &&
                                  directory_now.st_ino == directory_by_name.st_ino;
  if (its_directory && !is_directory_there) {
    work.refuse(frozen.status,
                "is in the directory " + *its_directory + ", which is not there by that name");
  }
  const auto root = read_link(directory + "/root");
  const auto own_root = read_link("/proc/self/root");
  if (root && own_root && *root != *own_root)
    work.refuse(frozen.status, "has another root directory: " + *root);
  for (const char* space : {"user", "ipc", "mnt", "net", "uts", "cgroup"}) {
    const auto its = read_link(fmt::format("{}/ns/{}", directory, space));
    const auto ours =
        read_link(fmt::format("/proc/{}/ns/{}", work.frozen.processes().front().here, space));
    if (its && ours && *its != *ours)
      work.refuse(frozen.status, fmt::format("has a {} namespace of its own", space));
  }
}

// Refuses processes and threads of other users or groups. Only a process of the same user may read
// all of their state.
void refuse_other_users(DumpWork& work) {
  const auto own = status_of("/proc/self");
  for (const FrozenProcess& frozen : work.frozen.processes()) {
    if (own && frozen.status.users != own->users) {
      work.refuse(
          frozen.status,
          "runs as another user, or in other groups, than the command that started the job");
    }
    for (const FrozenThread& thread : frozen.threads) {
      const auto status = status_of(fmt::format("/proc/{}/task/{}", frozen.here, thread.name.here));
      if (status && status->users != frozen.status.users) {
        work.refuse(frozen.status,
                    fmt::format("has a thread ({}) of another user or group", thread.name.thread));
      }
    }
  }
}

// Refuses processes whose memory the kernel shows to nobody else.
void refuse_hidden_memory(DumpWork& work) {
  for (const FrozenProcess& frozen : work.frozen.processes()) {
    const int memory =
        ::open(fmt::format("/proc/{}/mem", frozen.here).c_str(), O_RDONLY | O_CLOEXEC);
    if (memory >= 0) ::close(memory);
    const bool is_denied = memory < 0 && (errno == EACCES || errno == EPERM);
    if (is_denied && has_memory(frozen.here)) work.refuse(frozen.status, kHiddenProcess);
    if (is_denied && !has_memory(frozen.here)) work.refuse_for_now(frozen.status, "has ended");
  }
}

bool is_same(pid_t one, pid_t other, int what) {
  return ::syscall(SYS_kcmp, one, other, what, 0, 0) == 0;
}

// Refuses threads that do not share the open files and the directory of their process, and
// processes that share memory, open files, directory or signal handlers. A restart makes threads
// that share these things, and processes that do not.
void refuse_strange_sharing(DumpWork& work) {
  for (const FrozenProcess& frozen : work.frozen.processes()) {
    for (const FrozenThread& thread : frozen.threads) {
      const pid_t leader = frozen.here, here = thread.name.here;
      if (here == leader || (is_same(leader, here, KCMP_FILES) && is_same(leader, here, KCMP_FS)))
        continue;
      work.refuse(
          frozen.status,
          fmt::format("has a thread ({}) with open files or a directory of its own (unshare)",
                      thread.name.thread));
    }
  }
  for (const int what : {KCMP_VM, KCMP_FILES, KCMP_FS, KCMP_SIGHAND}) {
    // kcmp orders such objects. The result 1 says that the first one is less than the second.
    const auto is_before = [&](const FrozenProcess* one, const FrozenProcess* other) {
      return ::syscall(SYS_kcmp, one->here, other->here, what, 0, 0) == 1;
    };
    std::set<const FrozenProcess*, decltype(is_before)> known(is_before);
    for (const FrozenProcess& frozen : work.frozen.processes()) {
      const auto [same, is_new] = known.insert(&frozen);
      if (is_new || !is_same((*same)->here, frozen.here, what)) continue;
      work.refuse(frozen.status,
                  fmt::format("shares its memory, open files, directory or signal handlers with "
                              "process {} (clone)",
                              (*same)->status.id));
    }
  }
}

std::uint32_t id_of(const FrozenProcess& frozen) { return frozen.status.id; }

void look_at_families(DumpWork& work) {
  for (const FamilyTrouble& one : troubles_of_families(work.result.job)) {
    const auto frozen = std::ranges::find(work.frozen.processes(), one.process, id_of);
    if (frozen != work.frozen.processes().end()) work.refuse(frozen->status, one.what);
  }
}

Status refusals_of(const DumpWork& work) {
  if (work.refusals.empty()) return {};
  std::string text = "the job holds what cannot be restored, and runs on without a checkpoint:";
  for (const std::string& one : work.refusals) text += "\n  " + one;
  return fail(work.is_of_the_moment ? Code::again : Code::argument, text);
}

// Lets threads that are in the kernel's code come out of it, which they do within some hundred
// instructions. That code reads clocks in the kernel's memory, and another kernel has others.
Status leave_kernel_code(FrozenProcess& frozen) {
  constexpr std::uint32_t kMostSteps = 20'000;
  const auto is_outside = [](const FrozenThread& one) {
    const std::int64_t call = call_under_way(one.registers);
    return call >= 0 && !is_made_by_vdso(call);
  };
  if (std::ranges::all_of(frozen.threads, is_outside)) return {};
  DIAPAUSE_TRY_ASSIGN(const std::vector<Mapping> mappings, places_of(frozen.here));
  const auto code =
      std::ranges::find_if(mappings, [](const Mapping& one) { return has_kernel_code(one); });
  if (code == mappings.end()) return {};
  for (FrozenThread& thread : frozen.threads) {
    if (thread.registers.rip < code->begin || thread.registers.rip >= code->end) continue;
    thread.is_touched = true;
    DIAPAUSE_TRY(set_signal_mask(thread.name.here, kMaskInCalls));
    DIAPAUSE_TRY_ASSIGN(thread.registers,
                        leave_code(thread.name.here, code->begin, code->end, kMostSteps));
    DIAPAUSE_TRY(set_signal_mask(thread.name.here, thread.mask));
    thread.call = call_under_way(thread.registers);
  }
  return {};
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
  DIAPAUSE_TRY_ASSIGN(const ProcStatus parent,
                      status_of(fmt::format("/proc/{}", frozen.status.parent_here)));
  process.parent = parent.id;
  DIAPAUSE_TRY(note_end_signal(frozen.here, process, work.result.job));
  auto program = read_link(directory + "/exe");
  // A process can be killed while it is stopped.
  if (!program && !has_memory(frozen.here)) {
    return fail(Code::io, fmt::format("process {} ({}) has ended during the checkpoint",
                                      frozen.status.id, frozen.status.name));
  }
  if (!program) return fail(std::move(program.error()));
  process.program = std::move(*program);
  DIAPAUSE_TRY_ASSIGN(process.directory, read_link(directory + "/cwd"));
  refuse_what_is_strange(work, frozen);
  DIAPAUSE_TRY(read_limits(frozen.here, process));
  DIAPAUSE_TRY(read_map(frozen.here, process.map));
  DIAPAUSE_TRY(leave_kernel_code(frozen));
  // The memory is dumped before the code for system calls is mapped into the process.
  DIAPAUSE_TRY(dump_memory(work, frozen, process));
  DIAPAUSE_TRY_ASSIGN(process.waiting_signals, waiting_signals_of(frozen.here, Queue::process));
  DIAPAUSE_TRY(dump_descriptors(work, frozen, process));
  DIAPAUSE_TRY(work.frozen.plant(frozen));
  DIAPAUSE_TRY(ask_process(frozen, process));
  DIAPAUSE_TRY(dump_timers(work, frozen));
  DIAPAUSE_TRY(dump_privileges(work, frozen));
  DIAPAUSE_TRY(dump_signal_owners(work, frozen, process));
  return dump_threads(work, frozen, process);
}

// Records the ended processes that nobody has waited for. Children of process 1 are left out,
// because process 1 waits for them itself.
Status dump_zombies(DumpWork& work) {
  for (const Zombie& zombie : work.frozen.zombies()) {
    DIAPAUSE_TRY_ASSIGN(const ProcStatus parent,
                        status_of(fmt::format("/proc/{}", zombie.status.parent_here)));
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
    DIAPAUSE_TRY(note_end_signal(zombie.here, process, work.result.job));
  }
  return {};
}

// Sorts the processes so that each parent comes before its children, beginning with a child of
// process 1. Processes that do not descend from process 1 come last.
void sort_by_descent(std::vector<Process>& processes) {
  std::vector<Process> sorted;
  std::vector<std::uint32_t> done = {1};
  while (!processes.empty()) {
    const auto next = std::ranges::find_if(processes, [&](const Process& one) {
      return std::ranges::find(done, one.parent) != done.end();
    });
    if (next == processes.end()) break;
    done.push_back(next->id);
    sorted.push_back(std::move(*next));
    processes.erase(next);
  }
  processes.insert(processes.begin(), std::make_move_iterator(sorted.begin()),
                   std::make_move_iterator(sorted.end()));
}

}  // namespace

Result<Dump> dump(FrozenJob& frozen, const Surroundings& surroundings) {
  OtherNodes* const others = surroundings.others;
  const Relocation& relocation = surroundings.relocation;
  DIAPAUSE_TRY_ASSIGN(const ProcStatus own, status_of("/proc/self"));
  DumpWork work{frozen, surroundings.standard, own.filters + (relocation.is_needed() ? 1 : 0),
                surroundings.empty_messages};
  Job& job = work.result.job;
  job.machine = "x86_64";
  job.instructions = surroundings.processor.instructions;
  job.register_parts = surroundings.processor.parts;
  job.command = surroundings.command;
  job.addresses =
      relocation.known_of_own().empty() ? sys::own_addresses() : relocation.known_of_own();
  job.unix_ns = sys::unix_time_ns();
  if (frozen.processes().empty()) return fail(Code::again, "the job has no process that runs");
  // The job is about to end. A version without its command could not be restarted.
  if (std::ranges::find(frozen.processes(), surroundings.command, id_of) ==
      frozen.processes().end()) {
    return fail(Code::again, "the command of the job has ended");
  }
  refuse_other_users(work);
  refuse_hidden_memory(work);
  DIAPAUSE_TRY(refusals_of(work));
  refuse_strange_sharing(work);
  for (FrozenProcess& process : frozen.processes()) DIAPAUSE_TRY(dump_process(work, process));
  // Threads that came out of the kernel's code may have read a clock there.
  const Clocks clocks = clocks_of(frozen.processes().front().here);
  job.monotonic_ns = clocks.monotonic_ns;
  job.since_boot_ns = clocks.since_boot_ns;
  share_what_is_only_read(work);
  DIAPAUSE_TRY(look_at_segments(work));
  DIAPAUSE_TRY(dump_system_v(work));
  refuse_posix_queues(work);
  DIAPAUSE_TRY(dump_stops(work));
  DIAPAUSE_TRY(dump_zombies(work));
  DIAPAUSE_TRY(dump_channels(work));
  DIAPAUSE_TRY(connect_sockets(work));
  if (others != nullptr) DIAPAUSE_TRY(find_far_ends(work, *others));
  DIAPAUSE_TRY(refuse_outsiders(work, others));
  DIAPAUSE_TRY(look_at_terminals(work));
  sort_by_descent(job.processes);
  look_at_families(work);
  look_at_sets(work);
  DIAPAUSE_TRY(refusals_of(work));
  work.result.connections_s = sys::monotonic_s();
  if (others != nullptr) DIAPAUSE_TRY(take_down_far_sockets(work, *others));
  DIAPAUSE_TRY(take_down_sockets(work));
  DIAPAUSE_TRY(take_down_terminals(work));
  relocation.to_known(job);
  return std::move(work.result);
}

}  // namespace diapause::process
