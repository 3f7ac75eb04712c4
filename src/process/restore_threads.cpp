// Restores threads, descriptors and everything else that a process has besides its memory.
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "process/proc.hpp"
#include "process/restore_parts.hpp"

namespace diapause::process {
namespace {

constexpr std::uint64_t kSetBytes = 8;  // size of the kernel's sigset_t

ByteVector with_end(const std::string& text) {
  ByteVector bytes(text.size() + 1);
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

Status restore_actions(const RestoreWork& work, const Made& made) {
  const std::uint64_t room = work.calls.room();
  std::vector<Call> calls;
  for (std::uint64_t i = 0; i < made.stored->actions.size(); ++i) {
    if (i + 1 == SIGKILL || i + 1 == SIGSTOP) continue;
    calls.push_back({SYS_rt_sigaction, {i + 1, room + i * sizeof(SignalAction), 0, kSetBytes}, 0});
  }
  DIAPAUSE_TRY(
      write_memory(made.leader().here, room, std::as_bytes(std::span(made.stored->actions))));
  return work.calls.run(made.leader(), calls);
}

Status queue_signals(const RestoreWork& work, const ThreadName& thread,
                     const std::vector<ByteVector>& waiting, Queue queue) {
  for (const ByteVector& one : waiting) {
    std::uint32_t number = 0;
    if (one.size() != sizeof(siginfo_t)) return fail(Code::corrupt, "a signal of another length");
    std::memcpy(&number, one.data(), sizeof number);
    const std::uint64_t room = work.calls.room();
    const Call to_thread{SYS_rt_tgsigqueueinfo, {thread.process, thread.thread, number, room}, 0};
    const Call to_process{SYS_rt_sigqueueinfo, {thread.process, number, room}, 0};
    DIAPAUSE_TRY(call_with(work, thread, one, queue == Queue::thread ? to_thread : to_process));
  }
  return {};
}

Status restore_limits(const Made& made) {
  for (std::size_t i = 0; i < made.stored->limits.size(); ++i) {
    const Limit& stored = made.stored->limits[i];
    rlimit now{};
    const auto which = static_cast<__rlimit_resource>(i);
    if (::prlimit(made.leader().here, which, nullptr, &now) == 0 && now.rlim_cur == stored.soft &&
        now.rlim_max == stored.hard) {
      continue;
    }
    // A hard limit that is lower here is not raised.
    const rlimit wanted{std::min<rlim_t>(stored.soft, now.rlim_max),
                        std::min<rlim_t>(stored.hard, now.rlim_max)};
    if (::prlimit(made.leader().here, which, &wanted, nullptr) != 0) {
      return fail(
          os_error(fmt::format("setting the limits of process {}", made.stored->id), errno));
    }
  }
  return {};
}

// Sets the capabilities of the threads as they were stored, which is how exec would have left them
// for an ordinary user. Capabilities that the restart does not have itself are lost.
Status restore_capabilities(RestoreWork& work, const Made& made) {
  struct {
    __user_cap_header_struct header;
    __user_cap_data_struct data[2];
  } argument{};
  argument.header.version = _LINUX_CAPABILITY_VERSION_3;
  const Process& stored = *made.stored;
  DIAPAUSE_TRY_ASSIGN(const ProcStatus now, status_of(fmt::format("/proc/{}", made.leader().here)));
  const std::uint64_t permitted = stored.permitted & now.permitted;
  const std::uint64_t effective = stored.effective & permitted;
  const std::uint64_t inheritable = stored.inheritable & (now.inheritable | now.permitted);
  if (permitted != stored.permitted || inheritable != stored.inheritable) {
    for (const Thread& thread : stored.threads)
      work.lost["capabilities that this restart does not have"].push_back(thread.id);
  }
  // A thread that sets them gets credentials of its own, even if they are the same, and drivers of
  // InfiniBand take calls only from threads that share those of whoever opened the adapter.
  const bool is_same =
      now.inheritable == inheritable && now.permitted == permitted && now.effective == effective;
  if (is_same) return {};
  for (int half = 0; half < 2; ++half) {
    argument.data[half].effective = static_cast<__u32>(effective >> (32 * half));
    argument.data[half].permitted = static_cast<__u32>(permitted >> (32 * half));
    argument.data[half].inheritable = static_cast<__u32>(inheritable >> (32 * half));
  }
  const std::uint64_t room = work.calls.room();
  for (const ThreadName& thread : made.threads) {
    DIAPAUSE_TRY(call_with(work, thread, as_byte_view(argument),
                           {SYS_capset, {room, room + sizeof argument.header}, 0}));
  }
  return {};
}

Status restore_thread(const RestoreWork& work, const ThreadName& name, const Thread& thread) {
  const std::uint64_t room = work.calls.room();
  struct {
    stack_t stack;
    char name[16];
  } argument{};
  // This is SS_ONSTACK. It says that the thread runs on the stack, and cannot be set.
  constexpr std::uint32_t kOnStack = 1;
  argument.stack.ss_sp = reinterpret_cast<void*>(thread.stack_address);
  argument.stack.ss_flags = static_cast<int>(thread.stack_flags & ~kOnStack);
  argument.stack.ss_size = thread.stack_bytes;
  std::memcpy(argument.name, thread.name.data(),
              std::min<std::size_t>(thread.name.size(), sizeof argument.name - 1));
  std::vector<Call> calls = {
      {SYS_set_tid_address, {thread.cleared_address}, 0},
      {SYS_set_robust_list | (thread.robust_list == 0 ? kMayFail : 0),
       {thread.robust_list, thread.robust_list_bytes},
       0},
      {SYS_sigaltstack, {room, 0}, 0},
      {SYS_prctl, {PR_SET_NAME, room + offsetof(decltype(argument), name)}, 0}};
  if (thread.sequence_address != 0) {
    calls.push_back({SYS_rseq,
                     {thread.sequence_address, thread.sequence_bytes, 0, thread.sequence_signature},
                     0});
  }
  DIAPAUSE_TRY(write_memory(name.here, room, as_byte_view(argument)));
  DIAPAUSE_TRY(work.calls.run(name, calls));
  return queue_signals(work, name, thread.waiting_signals, Queue::thread);
}

// Begins a call that was to last until a certain time, for the rest of that time, and interrupts
// it. From then on the kernel knows when the call ends, as it did before. If the call has ended at
// once, `registers` hold what it has returned.
Status begin_timed_call(const RestoreWork& work, const ThreadName& name, const Thread& thread,
                        Registers& registers) {
  Call call{
      static_cast<std::uint64_t>(thread.timed_call),
      {registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9},
      0};
  const timespec left{static_cast<time_t>(thread.left_ns / 1'000'000'000),
                      static_cast<long>(thread.left_ns % 1'000'000'000)};
  const std::uint64_t room = work.calls.room();
  DIAPAUSE_TRY(write_memory(name.here, room, as_byte_view(left)));
  if (thread.timed_call == SYS_nanosleep) call.arguments[0] = room;
  if (thread.timed_call == SYS_clock_nanosleep) call.arguments[2] = room;
  if (thread.timed_call == SYS_futex) call.arguments[3] = room;
  if (thread.timed_call == SYS_poll) call.arguments[2] = (thread.left_ns + 999'999) / 1'000'000;
  const std::uint64_t instruction = work.calls.address() + find_call_instruction(call_table_code());
  DIAPAUSE_TRY_ASSIGN(const Registers before, registers_of(name.here));
  DIAPAUSE_TRY(set_registers(name.here, registers_for_call(call, instruction, before)));
  // The call has begun when it has been entered. The code behind it must not run.
  DIAPAUSE_TRY(enter_call(name.here));
  DIAPAUSE_TRY(stop_for_signals(name.here));
  DIAPAUSE_TRY_ASSIGN(const Registers after, registers_of(name.here));
  registers.rax = after.rax;
  registers.orig_rax = after.orig_rax;
  return {};
}

void restore_schedules(RestoreWork& work, const Made& made) {
  for (const Schedule& own : work.job.schedules) {
    const auto thread = std::ranges::find(made.threads, own.thread, &ThreadName::thread);
    if (thread == made.threads.end()) continue;
    set_schedule(thread->here, own, work.given,
                 [&](const std::string& what) { work.lost[what].push_back(own.thread); });
  }
}

// Makes terminals the controlling ones of a session, by the leader of the session. Must be called
// while the leader still has all descriptors that were opened for it.
Status restore_controlling_terminal(const RestoreWork& work, const Made& made) {
  const Process& process = *made.stored;
  if (process.session != process.id) return {};
  for (std::uint32_t i = 0; i < work.job.terminals.size(); ++i) {
    const Terminal& terminal = work.job.terminals[i];
    if (terminal.session != process.id) continue;
    const auto end = static_cast<std::uint64_t>(work.openings.of_terminal(i));
    DIAPAUSE_TRY(work.calls.one(made.leader(), {SYS_ioctl, {end, TIOCSCTTY, 0}, 0}));
    if (terminal.group == 0) continue;
    const Call to_foreground{SYS_ioctl, {end, TIOCSPGRP, work.calls.room()}, 0};
    DIAPAUSE_TRY(call_with(work, made.leader(), as_byte_view(terminal.group), to_foreground));
  }
  return {};
}

// Takes the locks of a process again. Must be called after its last descriptor was closed, because
// a process loses its locks on a file when it closes any descriptor of the file.
Status restore_locks(const RestoreWork& work, const Made& made) {
  for (const FileLock& lock : work.job.locks) {
    if (lock.process != made.stored->id) continue;
    struct flock range {};
    range.l_type = lock.is_exclusive ? F_WRLCK : F_RDLCK;
    range.l_whence = SEEK_SET;
    range.l_start = static_cast<off_t>(lock.begin);
    range.l_len = static_cast<off_t>(lock.bytes);
    const std::uint64_t set = lock.kind == LockKind::process ? F_SETLK : F_OFD_SETLK;
    const std::uint64_t whole = (lock.is_exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB;
    const Call take = lock.kind == LockKind::whole_description
                          ? Call{SYS_flock, {lock.number, whole}, 0}
                          : Call{SYS_fcntl, {lock.number, set, work.calls.room()}, 0};
    const auto taken = call_with(work, made.leader(), as_byte_view(range), take);
    if (taken) continue;
    const auto known =
        std::ranges::find(made.stored->descriptors, lock.number, &Descriptor::number);
    return fail(
        Code::busy,
        fmt::format("the lock that process {} had on {} cannot be taken again: {}", lock.process,
                    work.job.descriptions[known->description].path, taken.error().message));
  }
  return {};
}

}  // namespace

namespace {

// Returns whether a process is the first of the job that has an epoll set. The set watches the
// descriptors of that one.
bool is_first_with(const Job& job, const Process& process, std::uint32_t description) {
  const auto has_it = [&](const Process& one) {
    return std::ranges::find(one.descriptors, description, &Descriptor::description) !=
           one.descriptors.end();
  };
  const auto first = std::ranges::find_if(job.processes, has_it);
  return first != job.processes.end() && first->id == process.id;
}

bool is_pidfd(const RestoreWork& work, const Descriptor& one) {
  return work.job.descriptions[one.description].kind == DescriptionKind::process;
}

// Gives what a process has opened the number that it knew it by.
Status give_number(const RestoreWork& work, const Made& made, std::uint64_t opened,
                   const Descriptor& one) {
  const std::uint64_t closes = one.closes_on_exec ? FD_CLOEXEC : 0;
  std::vector<Call> calls;
  if (opened == one.number) {
    calls.push_back({SYS_fcntl, {opened, F_SETFD, closes}, 0});
  } else {
    calls.push_back(
        {SYS_dup3, {opened, one.number, one.closes_on_exec ? std::uint64_t{O_CLOEXEC} : 0}, 0});
    calls.push_back({SYS_close, {opened}, 0});
  }
  return work.calls.run(made.leader(), calls);
}

// Opens a descriptor of a process. All processes exist by then.
Status open_pidfd(const RestoreWork& work, const Made& made, const Descriptor& one) {
  const Description& description = work.job.descriptions[one.description];
  const std::uint64_t flags = description.flags & O_NONBLOCK;
  DIAPAUSE_TRY_ASSIGN(
      const std::uint64_t opened,
      work.calls.one(made.leader(), {SYS_pidfd_open, {description.which, flags}, 0}));
  return give_number(work, made, opened, one);
}

// What such a file says is of the moment, so that descriptors which shared their offset need not
// share it any more. A program that had read it to its end finds that again.
Status open_file_of_proc(const RestoreWork& work, const Made& made, const Descriptor& one) {
  const Description& file = work.job.descriptions[one.description];
  auto opened = call_with(
      work, made.leader(), with_end(file.path),
      {SYS_openat, {static_cast<std::uint64_t>(AT_FDCWD), work.calls.room(), file.flags}, 0});
  if (!opened) {
    opened.error().message = fmt::format("process {} had {} open: {}", made.stored->id, file.path,
                                         opened.error().message);
    return fail(std::move(opened.error()));
  }
  constexpr std::uint64_t kMostReadings = 1 << 16;
  const Call read{SYS_read, {*opened, work.calls.room(), Calls::room_bytes()}, 0};
  for (std::uint64_t i = 0; file.offset > 0 && i < kMostReadings; ++i) {
    const auto got = work.calls.one(made.leader(), read);
    if (!got || *got == 0) break;
  }
  return give_number(work, made, *opened, one);
}

// Makes what the kernel has saved on a stack fit this processor, from `begin` on.
Status fit_frames(const RestoreWork& work, const Made& made, const Thread& thread, Extent stack) {
  constexpr std::uint64_t kAlignment = 64, kMost = 64 * kMiB;
  stack.begin -= stack.begin % kAlignment;
  ByteVector bytes(std::min(stack.end - stack.begin, kMost));
  DIAPAUSE_TRY(read_any_memory(made.leader().here, stack.begin, bytes));
  const std::size_t changed = fit_signal_frames(bytes, work.job.register_parts,
                                                thread.extended_registers.size(), work.processor);
  return changed == 0 ? Status{} : write_any_memory(made.leader().here, stack.begin, bytes);
}

// A thread may be in handlers of signals: on its stack, or on the one that it has for them.
Status fit_frames_of(const RestoreWork& work, const Made& made, const Thread& thread,
                     std::uint64_t stack_pointer) {
  if (work.job.register_parts.empty() || work.job.register_parts == work.processor.parts) return {};
  for (const Area& area : made.stored->areas) {
    if (area.kind != AreaKind::memory || (area.protection & PROT_WRITE) == 0) continue;
    if (stack_pointer >= area.begin && stack_pointer < area.end)
      DIAPAUSE_TRY(fit_frames(work, made, thread, {stack_pointer, area.end}));
    const Extent other{std::max(thread.stack_address, area.begin),
                       std::min(thread.stack_address + thread.stack_bytes, area.end)};
    if (thread.stack_bytes != 0 && other.begin < other.end)
      DIAPAUSE_TRY(fit_frames(work, made, thread, other));
  }
  return {};
}

}  // namespace

Status restore_files_of_proc(RestoreWork& work, Made& made) {
  for (const Descriptor& one : made.stored->descriptors) {
    if (is_of_proc(work.job.descriptions[one.description]))
      DIAPAUSE_TRY(open_file_of_proc(work, made, one));
  }
  return {};
}

Status restore_descriptors(RestoreWork& work, Made& made) {
  DIAPAUSE_TRY(restore_controlling_terminal(work, made));
  std::vector<Call> calls;
  std::vector<Call> closes;  // of all others; those that are copied may lie between the job's
  std::uint64_t next = 0;
  std::vector<Descriptor> descriptors = made.stored->descriptors;
  std::ranges::sort(descriptors, {}, &Descriptor::number);
  for (const Descriptor& one : descriptors) {
    if (work.openings.of_description(one.description) < 0) continue;
    const auto from = static_cast<std::uint64_t>(work.openings.of_description(one.description));
    const std::uint64_t flags = one.closes_on_exec ? O_CLOEXEC : 0;
    calls.push_back({SYS_dup3, {from, one.number, flags}, 0});
    if (one.number > next) closes.push_back({SYS_close_range, {next, one.number - 1}, 0});
    next = one.number + std::uint64_t{1};
  }
  closes.push_back({SYS_close_range, {next, ~0u}, 0});
  calls.insert(calls.end(), closes.begin(), closes.end());
  DIAPAUSE_TRY(work.calls.run(made.leader(), calls));
  for (const Descriptor& one : descriptors) {
    if (is_pidfd(work, one)) DIAPAUSE_TRY(open_pidfd(work, made, one));
  }
  for (const Descriptor& one : descriptors) {
    const std::vector<Watched>& set = work.job.descriptions[one.description].watched;
    if (set.empty() || !is_first_with(work.job, *made.stored, one.description)) continue;
    for (const Watched& watched : set) {
      epoll_event event{};
      event.events = watched.events;
      event.data.u64 = watched.data;
      const Call add{
          SYS_epoll_ctl, {one.number, EPOLL_CTL_ADD, watched.number, work.calls.room()}, 0};
      const auto added = call_with(work, made.leader(), as_byte_view(event), add);
      // EEXIST says that the file was added already, by another descriptor of the same set.
      if (!added && added.error().os_errno != EEXIST) return fail(added.error());
    }
  }
  return restore_locks(work, made);
}

Status restore_attributes(RestoreWork& work, Made& made) {
  const Process& stored = *made.stored;
  const ThreadName& leader = made.leader();
  const std::uint64_t room = work.calls.room();
  auto moved = call_with(work, leader, with_end(stored.directory), {SYS_chdir, {room}, 0});
  if (!moved) {
    moved.error().message = fmt::format("process {}: its directory {}: {}", stored.id,
                                        stored.directory, moved.error().message);
    return fail(std::move(moved.error()));
  }
  DIAPAUSE_TRY(restore_actions(work, made));
  DIAPAUSE_TRY(queue_signals(work, leader, stored.waiting_signals, Queue::process));
  DIAPAUSE_TRY(restore_limits(made));
  std::vector<Call> calls = {{SYS_umask, {stored.mask}, 0},
                             {SYS_personality, {stored.personality}, 0},
                             {SYS_prctl, {PR_SET_PDEATHSIG, stored.death_signal}, 0},
                             {SYS_prctl, {PR_SET_CHILD_SUBREAPER, stored.subreaper}, 0}};
  if (stored.dumpable <= 1) calls.push_back({SYS_prctl, {PR_SET_DUMPABLE, stored.dumpable}, 0});
  if (stored.no_new_privileges != 0) calls.push_back({SYS_prctl, {PR_SET_NO_NEW_PRIVS, 1}, 0});
  DIAPAUSE_TRY(work.calls.run(leader, calls));
  DIAPAUSE_TRY(restore_barriers(work, made));
  DIAPAUSE_TRY(restore_limits_of_capabilities(work, made));
  DIAPAUSE_TRY(restore_capabilities(work, made));
  return restore_ambient_capabilities(work, made);
}

Status restore_threads(RestoreWork& work, Made& made) {
  constexpr std::uint64_t kThread =
      CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
  const std::vector<Thread>& threads = made.stored->threads;
  for (std::size_t i = 1; i < threads.size(); ++i) {
    DIAPAUSE_TRY_ASSIGN(const pid_t here,
                        make_task(work, made.leader(), kThread, threads[i].id, 0));
    made.threads.push_back({here, made.stored->id, threads[i].id});
  }
  for (std::size_t i = 0; i < threads.size(); ++i)
    DIAPAUSE_TRY(restore_thread(work, made.threads[i], threads[i]));
  return {};
}

Status finish_threads(RestoreWork& work, Made& made) {
  const Process& stored = *made.stored;
  std::vector<Call> timers;
  std::array<itimerval, 3> settings{};
  for (std::size_t i = 0; i < 3; ++i) {
    const Interval& one = stored.intervals[i];
    if (one.left_us == 0 && one.period_us == 0) continue;
    // A periodic timer with no time left has expired. It goes on when its signal, which waits, has
    // been taken.
    const std::uint64_t left_us = std::max<std::uint64_t>(one.left_us, 1);
    settings[i].it_value = {static_cast<time_t>(left_us / 1'000'000),
                            static_cast<suseconds_t>(left_us % 1'000'000)};
    settings[i].it_interval = {static_cast<time_t>(one.period_us / 1'000'000),
                               static_cast<suseconds_t>(one.period_us % 1'000'000)};
    timers.push_back({SYS_setitimer, {i, work.calls.room() + i * sizeof(itimerval), 0}, 0});
  }
  DIAPAUSE_TRY(write_memory(made.leader().here, work.calls.room(), as_byte_view(settings)));
  DIAPAUSE_TRY(work.calls.run(made.leader(), timers));
  DIAPAUSE_TRY(restore_timers(work, made));
  DIAPAUSE_TRY(restore_signal_owners(work, made));
  std::vector<Registers> registers(stored.threads.size());
  for (std::size_t i = 0; i < registers.size(); ++i) {
    std::memcpy(&registers[i], stored.threads[i].registers.data(), sizeof(Registers));
    if (stored.threads[i].timed_call < 0) continue;
    DIAPAUSE_TRY(begin_timed_call(work, made.threads[i], stored.threads[i], registers[i]));
    work.timed[made.threads[i].here] = {registers[i].rsp, stored.threads[i].timed_call,
                                        monotonic_ns() + stored.threads[i].left_ns};
  }
  DIAPAUSE_TRY(work.calls.remove(made.leader(), made.instruction));
  for (std::size_t i = 0; i < registers.size(); ++i) {
    const Thread& thread = stored.threads[i];
    const pid_t here = made.threads[i].here;
    DIAPAUSE_TRY(stop_for_signals(here));
    if (thread.sequence_section != 0) {
      DIAPAUSE_TRY(
          write_memory(here, thread.sequence_address + 8, as_byte_view(thread.sequence_section)));
    }
    DIAPAUSE_TRY_ASSIGN(
        const ByteVector extended,
        fit_registers(thread.extended_registers, work.job.register_parts, work.processor));
    DIAPAUSE_TRY(set_extended_registers(here, extended));
    DIAPAUSE_TRY(fit_frames_of(work, made, thread, registers[i].rsp));
    DIAPAUSE_TRY(set_registers(here, registers[i]));
    DIAPAUSE_TRY(set_signal_mask(here, thread.signal_mask));
  }
  restore_schedules(work, made);  // the last step, because a thread may run seldom after it
  return {};
}

}  // namespace diapause::process
