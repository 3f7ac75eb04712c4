#include "process/restore.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>

#include "format/checksum.hpp"
#include "process/borrowed.hpp"
#include "process/clocks.hpp"
#include "process/families.hpp"
#include "process/proc.hpp"
#include "process/restore_parts.hpp"
#include "process/translator.hpp"

namespace diapause::process {
namespace {

// Returns the lowest address at which the code for system calls collides with no mapping in
// `mappings` or in a process of the job.
std::uint64_t find_free_address(const Job& job, const std::vector<Mapping>& mappings) {
  std::vector<Extent> taken;
  for (const Mapping& one : mappings) taken.push_back({one.begin, one.end});
  for (const Process& process : job.processes) {
    for (const Area& area : process.areas) taken.push_back({area.begin, area.end});
  }
  std::ranges::sort(taken, {}, &Extent::begin);
  constexpr std::uint64_t kMargin = 256 * kPageBytes;  // room for stacks, which grow down
  std::uint64_t address = 0x100000;
  for (const Extent& one : taken) {
    if (one.begin >= address + Calls::kBytes + kMargin) break;
    address = std::max(address, one.end + kPageBytes);
  }
  return address;
}

}  // namespace

Result<pid_t> make_task(const RestoreWork& work, const ThreadName& parent, std::uint64_t flags,
                        std::uint32_t id, std::uint32_t end_signal) {
  struct {
    clone_args arguments;
    pid_t id;
  } room{};
  const std::uint64_t address = work.calls.room();
  room.arguments.flags = flags;
  room.arguments.exit_signal = end_signal;
  room.arguments.set_tid = address + offsetof(decltype(room), id);
  room.arguments.set_tid_size = 1;
  room.id = static_cast<pid_t>(id);
  DIAPAUSE_TRY(write_memory(parent.here, address, as_byte_view(room)));
  auto done = work.calls.birth(parent, {SYS_clone3, {address, sizeof room.arguments}, 0});
  if (!done && done.error().os_errno == EEXIST) {
    return fail(Code::busy, fmt::format("process id {} is in use in the new namespace", id));
  }
  if (!done && done.error().os_errno == EAGAIN) {
    return fail(Code::again,
                fmt::format("{} {} of the job cannot be made: no more processes and threads are "
                            "permitted; raise the limit (ulimit -u, or pids.max of the control "
                            "group), and restart once more",
                            (flags & CLONE_THREAD) != 0 ? "thread" : "process", id));
  }
  if (!done) return fail(std::move(done.error()));
  return done->here;
}

namespace {

// Returns the signal that a process sends to its parent when it ends.
std::uint32_t end_signal_of(const Job& job, const Process& process) {
  const auto own = std::ranges::find(job.end_signals, process.id, &EndSignal::process);
  if (own == job.end_signals.end()) return SIGCHLD;
  // One that has ended has sent its signal. What is left of it is that it was not SIGCHLD, for
  // which the parent has to wait in another way (__WCLONE).
  return process.has_ended ? 0 : own->signal;
}

// Makes a process and its descendants. Sessions are inherited: children that are in the session
// into which their parent was born are made before the parent begins its own.
Status make_process(RestoreWork& work, const ThreadName& parent, const Process& process) {
  DIAPAUSE_TRY_ASSIGN(const pid_t here,
                      make_task(work, parent, 0, process.id, end_signal_of(work.job, process)));
  const ThreadName leader{here, process.id, process.id};
  Made& made = work.made.emplace_back();
  made.stored = &process;
  made.threads.push_back(leader);
  std::vector<const Process*> before, after;
  for (const Process& child : work.job.processes) {
    if (child.parent != process.id) continue;
    (is_born_before(process, birth_session(work.job, child)) ? before : after).push_back(&child);
  }
  for (const Process* child : before) DIAPAUSE_TRY(make_process(work, leader, *child));
  if (process.session == process.id) DIAPAUSE_TRY(work.calls.one(leader, {SYS_setsid, {}, 0}));
  for (const Process* child : after) DIAPAUSE_TRY(make_process(work, leader, *child));
  return {};
}

// Makes a process that is needed only for a moment, to begin a session or a group or to have a
// child there.
Result<ThreadName> make_helper(const RestoreWork& work, const ThreadName& parent,
                               std::uint32_t id) {
  DIAPAUSE_TRY_ASSIGN(const pid_t here, make_task(work, parent, 0, id, 0));
  return ThreadName{here, id, id};
}

// Ends a helper and waits for it in its parent. The children of the helper become children of
// process 1.
Status end_helper(const RestoreWork& work, const ThreadName& helper, const ThreadName& parent) {
  end_traced(helper.here);
  return work.calls.one(parent, {SYS_wait4, {helper.process, 0, __WALL, 0}, 0})
      .map([](std::uint64_t) {});
}

const Made* made_of(const RestoreWork& work, std::uint32_t id) {
  const auto found =
      std::ranges::find_if(work.made, [&](const Made& one) { return one.stored->id == id; });
  return found == work.made.end() ? nullptr : &*found;
}

// Makes processes whose parent was process 1 in the end, but which were born into a session of the
// job. A helper makes them, which is a child of the leader of the session, or takes the place of a
// leader that has ended.
Status make_orphans(RestoreWork& work, const ThreadName& keeper, std::uint32_t session,
                    const std::vector<const Process*>& orphans) {
  const bool has_leader = has_session_leader(work.job, session);
  const ThreadName parent = has_leader ? made_of(work, session)->leader() : keeper;
  DIAPAUSE_TRY_ASSIGN(const ThreadName helper,
                      make_helper(work, parent, has_leader ? unused_id(work.job) : session));
  if (!has_leader) DIAPAUSE_TRY(work.calls.one(helper, {SYS_setsid, {}, 0}));
  for (const Process* orphan : orphans) DIAPAUSE_TRY(make_process(work, helper, *orphan));
  return end_helper(work, helper, parent);
}

// Makes all processes of the job. The orphans of a session that has a leader are made when the
// leader exists.
Status make_processes(RestoreWork& work, const ThreadName& keeper) {
  std::map<std::uint32_t, std::vector<const Process*>> orphans;  // by the id of the session
  for (const Process& process : work.job.processes) {
    if (process.parent != 1) continue;
    const std::uint32_t session = birth_session(work.job, process).value_or(0);
    if (session > 1) {
      orphans[session].push_back(&process);
    } else {
      DIAPAUSE_TRY(make_process(work, keeper, process));
    }
  }
  while (!orphans.empty()) {
    const auto next = std::ranges::find_if(orphans, [&](const auto& one) {
      return !has_session_leader(work.job, one.first) || made_of(work, one.first) != nullptr;
    });
    if (next == orphans.end())
      return fail(Code::corrupt, "sessions of the image begin in each other");
    DIAPAUSE_TRY(make_orphans(work, keeper, next->first, next->second));
    orphans.erase(next);
  }
  return {};
}

// Begins the groups whose first process has ended, each with a helper that has the number of the
// group.
Status begin_groups(RestoreWork& work) {
  std::map<std::uint32_t, std::vector<const Made*>> groups;
  for (const Made& made : work.made) {
    const Process& process = *made.stored;
    const bool is_of_session =
        process.group == process.session;  // a helper has begun such a group with its session
    if (process.group > 1 && !is_of_session && !has_group_leader(work.job, process.group)) {
      groups[process.group].push_back(&made);
    }
  }
  for (const auto& [group, members] : groups) {
    const ThreadName& parent = members.front()->leader();
    DIAPAUSE_TRY_ASSIGN(const ThreadName helper, make_helper(work, parent, group));
    DIAPAUSE_TRY(work.calls.one(helper, {SYS_setpgid, {0, 0}, 0}));
    for (const Made* member : members)
      DIAPAUSE_TRY(work.calls.one(member->leader(), {SYS_setpgid, {0, group}, 0}));
    DIAPAUSE_TRY(end_helper(work, helper, parent));
  }
  return {};
}

// Puts the processes into their groups. Leaders come first, so that there are groups to join.
Status restore_groups(RestoreWork& work) {
  DIAPAUSE_TRY(begin_groups(work));
  for (const bool is_leader : {true, false}) {
    for (const Made& made : work.made) {
      const Process& process = *made.stored;
      if ((process.group == process.id) != is_leader) continue;
      constexpr std::uint32_t kOfKeeper =
          1;  // 0 is the group of the agent; both are the group of process 1 now
      if (process.group <= kOfKeeper || process.session == process.id) continue;
      DIAPAUSE_TRY(work.calls.one(made.leader(), {SYS_setpgid, {0, process.group}, 0}));
    }
  }
  return {};
}

// Lets a process that has ended in the image end again in the same way. Its parent is signalled a
// second time, and must not see that.
Status end_process(const RestoreWork& work, const Made& made, const Made& parent) {
  const ThreadName& leader = made.leader();
  const std::uint32_t status = made.stored->exit_status;
  const std::uint32_t signal = status & 0x7f;
  const Call by_itself{SYS_exit_group, {status >> 8 & 0xff}, 0};
  const Call by_signal{SYS_kill, {made.stored->id, signal}, 0};
  std::vector<Call> calls = {signal == 0 ? by_itself : by_signal};
  DIAPAUSE_TRY(work.calls.run_away(leader, calls, signal == 0 ? kMaskInCalls : 0));
  const std::string directory = fmt::format("/proc/{}", leader.here);
  for (int look = 0;; ++look) {
    DIAPAUSE_TRY_ASSIGN(const ProcStatus now, status_of(directory));
    if (now.state == 'Z') break;
    if (look > 10'000)
      return fail(Code::timeout, fmt::format("process {} does not end", made.stored->id));
    ::usleep(100);
  }
  if (end_signal_of(work.job, *made.stored) != SIGCHLD) return {};
  return take_child_signal(work, parent.leader());
}

Status end_processes(RestoreWork& work) {
  for (const Made& made : work.made) {
    if (!made.stored->has_ended) continue;
    const auto parent = std::ranges::find_if(
        work.made, [&](const Made& one) { return one.stored->id == made.stored->parent; });
    if (parent == work.made.end())
      return fail(Code::corrupt, "a process that has ended has no parent");
    DIAPAUSE_TRY(end_process(work, made, *parent));
  }
  std::erase_if(work.made, [](const Made& one) { return one.stored->has_ended; });
  return {};
}

// Gives process 1 the filter for calls with addresses, which all processes inherit from it.
Status filter_addresses(const RestoreWork& work, const ThreadName& keeper,
                        const std::function<Status(int)>& translate) {
  const ByteVector filter = address_filter();
  sock_fprog program{};
  program.len = static_cast<unsigned short>(filter.size() / sizeof(sock_filter));
  program.filter = reinterpret_cast<sock_filter*>(work.calls.room() + sizeof program);
  ByteVector argument(sizeof program + filter.size());
  std::memcpy(argument.data(), &program, sizeof program);
  std::ranges::copy(filter, argument.begin() + sizeof program);
  const Call set{
      SYS_seccomp,
      {SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_SPEC_ALLOW,
       work.calls.room()},
      0};
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t there, call_with(work, keeper, argument, set));
  DIAPAUSE_TRY_ASSIGN(const Borrowed listener, Borrowed::of(keeper.here, static_cast<int>(there)));
  DIAPAUSE_TRY(work.calls.one(keeper, {SYS_close, {there}, 0}));
  return translate(listener.number());
}

// Lets the clocks of the job go on where they were, for the processes that process 1 makes.
void let_clocks_go_on(const RestoreWork& work, const ThreadName& keeper) {
  constexpr std::uint64_t kTimeNamespace = 0x80;  // CLONE_NEWTIME
  const Job& job = work.job;
  const auto unshared = work.calls.one(keeper, {SYS_unshare, {kTimeNamespace}, 0});
  const Clocks clocks{job.monotonic_ns, std::max(job.since_boot_ns, job.monotonic_ns)};
  const Status set = unshared ? set_clocks(keeper.here, clocks) : fail(unshared.error());
  if (set) return;
  const bool go_back = clocks_of(keeper.here).monotonic_ns < job.monotonic_ns;
  work.log(Severity::warning,
           fmt::format("the clocks CLOCK_MONOTONIC and CLOCK_BOOTTIME of the job go on as those of "
                       "this machine{}: {}",
                       go_back ? ", which are behind: programs may wait for long" : "",
                       set.error().message));
}

Status let_go(RestoreWork& work, const ThreadName& first, const Registers& registers,
              std::uint64_t mask, std::uint64_t instruction) {
  // Process 1 must not keep pipes open that its children close.
  std::vector<Call> closes;
  for (const int number : work.openings.numbers()) {
    closes.push_back({SYS_close, {static_cast<std::uint64_t>(number)}, 0});
  }
  DIAPAUSE_TRY(work.calls.run(first, closes));
  DIAPAUSE_TRY(work.calls.remove(first, instruction));
  DIAPAUSE_TRY(stop_for_signals(first.here));
  DIAPAUSE_TRY(set_registers(first.here, registers));
  DIAPAUSE_TRY(set_signal_mask(first.here, mask));
  DIAPAUSE_TRY(detach(first.here));
  for (const Made& made : work.made) {
    for (const ThreadName& thread : made.threads) {
      // The thread may be gone, because the others run already and end when they want.
      Status is_free = detach(thread.here);
      if (!is_free && is_free.error().os_errno != ESRCH) return is_free;
    }
  }
  return {};
}

void tell_what_is_lost(const RestoreWork& work, const LogSink& log) {
  for (const auto& [what, threads] : work.lost) {
    const std::string others =
        threads.size() == 1 ? "" : fmt::format(" and {} others", threads.size() - 1);
    log(Severity::warning, fmt::format("thread {}{} goes on without what it had of its own: {}",
                                       threads.front(), others, what));
  }
}

}  // namespace

Status take_child_signal(const RestoreWork& work, const ThreadName& thread) {
  struct {
    std::uint64_t set = std::uint64_t{1} << (SIGCHLD - 1);
    timespec limit{1, 0};
  } argument;
  const std::uint64_t room = work.calls.room();
  DIAPAUSE_TRY(write_memory(thread.here, room, as_byte_view(argument)));
  std::vector<Call> take = {
      {SYS_rt_sigtimedwait | kMayFail,
       {room, 0, room + offsetof(decltype(argument), limit), sizeof argument.set},
       0}};
  return work.calls.run(thread, take);
}

Result<std::uint64_t> call_with(const RestoreWork& work, const ThreadName& thread,
                                ByteView argument, const Call& call) {
  if (argument.size() > Calls::room_bytes())
    return fail(Code::corrupt, "an argument in the image is too long");
  DIAPAUSE_TRY(write_memory(thread.here, work.calls.room(), argument));
  return work.calls.one(thread, call);
}

Result<TimedCalls> restore(const Job& job, const Openings& openings,
                           const std::vector<StoredContents>& contents, const ReadContents& read,
                           const Birthplace& place) {
  const pid_t first = place.first;
  // Process 1 would never end the calls that it does for this process if nobody traced it, and
  // processes that are half made must not run.
  DIAPAUSE_TRY(attach_to_end_with_us(first));
  DIAPAUSE_TRY(ask_to_stop(first));
  DIAPAUSE_TRY_ASSIGN(const bool lives, await_stillness(first, 10));
  if (!lives) return fail(Code::internal, "process 1 of the job has ended");
  DIAPAUSE_TRY_ASSIGN(const Registers registers, registers_of(first));
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t mask, signal_mask_of(first));
  DIAPAUSE_TRY_ASSIGN(const std::vector<Mapping> mappings, places_of(first));
  DIAPAUSE_TRY_ASSIGN(const std::uint64_t instruction, find_call_instruction_of(first));
  const ThreadName keeper{first, 1, 1};
  DIAPAUSE_TRY_ASSIGN(const Calls calls,
                      Calls::plant(keeper, find_free_address(job, mappings), instruction));
  DIAPAUSE_TRY_ASSIGN(KernelCode kernel_code, KernelCode::for_job(job));
  RestoreWork work{job,
                   openings,
                   contents,
                   read,
                   schedule_of(::getpid()),
                   calls,
                   place.log,
                   std::move(kernel_code),
                   this_processor(),
                   place.behind};
  work.made.reserve(job.processes.size());
  work.filled.resize(job.memories.size());
  if (place.translate) DIAPAUSE_TRY(filter_addresses(work, keeper, place.translate));
  let_clocks_go_on(work, keeper);
  DIAPAUSE_TRY(make_segments(work, keeper));
  DIAPAUSE_TRY(make_system_v(work, keeper));
  DIAPAUSE_TRY(make_processes(work, keeper));
  DIAPAUSE_TRY(restore_groups(work));
  DIAPAUSE_TRY(end_processes(work));
  for (Made& made : work.made) {
    DIAPAUSE_TRY(restore_memory(work, made));
    DIAPAUSE_TRY(restore_descriptors(work, made));
    DIAPAUSE_TRY(restore_threads(work, made));
  }
  for (Made& made : work.made) {
    DIAPAUSE_TRY(restore_files_of_proc(work, made));
    DIAPAUSE_TRY(restore_attributes(work, made));
  }
  DIAPAUSE_TRY(forget_segments(work, keeper));
  DIAPAUSE_TRY(restore_stops(work));
  for (Made& made : work.made) DIAPAUSE_TRY(finish_threads(work, made));
  DIAPAUSE_TRY(openings.add_seals(job));
  DIAPAUSE_TRY(place.go());
  DIAPAUSE_TRY(let_go(work, keeper, registers, mask, instruction));
  if (place.behind != nullptr) place.behind->begin();
  tell_what_is_lost(work, place.log);
  return std::move(work.timed);
}

namespace {

// Checks that the processor has all instructions that programs may have chosen code by.
Status check_instructions(const Job& job, const Processor& here) {
  std::vector<std::string> missing;
  std::ranges::copy_if(job.instructions, std::back_inserter(missing), [&](const std::string& one) {
    return std::ranges::find(here.instructions, one) == here.instructions.end();
  });
  if (missing.empty()) return {};
  return fail(Code::mismatch,
              fmt::format("the programs of the image may use instructions that the processor here "
                          "does not have ({}): restart on one that has them",
                          fmt::join(missing, ", ")));
}

}  // namespace

Status check_machine(const Job& job) {
  if (job.machine != "x86_64")
    return fail(Code::mismatch, "the image is of a machine of the kind " + job.machine);
  const Processor processor = this_processor();
  DIAPAUSE_TRY(check_instructions(job, processor));
  for (const Process& process : job.processes) {
    for (const Thread& thread : process.threads) {
      if (process.has_ended) continue;
      if (thread.registers.size() != sizeof(Registers))
        return fail(Code::corrupt, "registers of another length");
      DIAPAUSE_TRY(fit_registers(thread.extended_registers, job.register_parts, processor));
    }
  }
  DIAPAUSE_TRY(KernelCode::for_job(job));
  return {};
}

}  // namespace diapause::process
