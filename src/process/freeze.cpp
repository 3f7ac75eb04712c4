#include "process/freeze.hpp"

#include <fmt/core.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstring>
#include <ctime>
#include <set>
#include <sstream>

#include "sys/process.hpp"

namespace diapause::process {
namespace {

constexpr double kStopLimit_s = 5;
constexpr std::int64_t kInterrupted = -EINTR;

// Returns the number after a name in the text of /proc/<pid>/sched, as in "se.exec_start :
// 1051898.677847".
std::optional<double> scheduler_value(const std::string& text, std::string_view name) {
  const std::size_t line = text.find(name);
  const std::size_t colon = line == std::string::npos ? line : text.find(':', line);
  const std::size_t begin =
      colon == std::string::npos ? colon : text.find_first_not_of(" \t", colon + 1);
  double value = 0;
  if (begin == std::string::npos) return std::nullopt;
  std::from_chars(text.data() + begin, text.data() + text.size(), value);
  return value;
}

// These are the time at which a thread last ran, by the clock of the processor that it ran on, and
// how often it has begun to wait since it was created.
struct LastRun {
  std::uint64_t ran_ns = 0;
  std::uint64_t waits = 0;
};
std::optional<LastRun> last_run(const std::string& directory) {
  const auto text = read_proc(directory + "/sched");
  if (!text) return std::nullopt;
  const auto ran_ms = scheduler_value(*text, "se.exec_start");
  const auto waits = scheduler_value(*text, "nr_voluntary_switches");
  if (!ran_ms || !waits) return std::nullopt;
  return LastRun{static_cast<std::uint64_t>(*ran_ms * 1e6), static_cast<std::uint64_t>(*waits)};
}

// Returns what must be added to a time of a processor's clock to get CLOCK_MONOTONIC. The calling
// thread moves to that processor. Such clocks stand still while a virtual machine gets no processor
// time, so the sum is too late rather than too early, and a call lasts longer rather than shorter.
std::optional<std::uint64_t> clock_offset_ns(std::uint64_t processor) {
  cpu_set_t only;
  CPU_ZERO(&only);
  if (processor >= CPU_SETSIZE) return std::nullopt;
  CPU_SET(processor, &only);
  if (::sched_setaffinity(0, sizeof only, &only) != 0) return std::nullopt;
  ::sched_yield();
  const auto now = last_run("/proc/thread-self");
  if (!now) return std::nullopt;
  return monotonic_ns() - now->ran_ns;
}

// Returns whether an interruption ends the call with EINTR although no signal has come.
bool is_ended_by_interruption(std::int64_t call) {
  constexpr std::int64_t kCalls[] = {
      SYS_epoll_wait,      SYS_epoll_pwait,  SYS_epoll_pwait2,    SYS_semop,        SYS_semtimedop,
      SYS_recvfrom,        SYS_recvmsg,      SYS_recvmmsg,        SYS_sendto,       SYS_sendmsg,
      SYS_accept,          SYS_accept4,      SYS_connect,         SYS_read,         SYS_write,
      SYS_rt_sigtimedwait, SYS_io_getevents, SYS_mq_timedreceive, SYS_mq_timedsend, SYS_msgrcv,
      SYS_msgsnd};
  return std::ranges::find(kCalls, call) != std::end(kCalls);
}

// Returns whether one of the waiting signals is not masked, so that it is about to be delivered.
bool has_open_signal(const Result<std::vector<ByteVector>>& waiting, std::uint64_t mask) {
  return waiting && std::ranges::any_of(*waiting, [&](const ByteVector& one) {
           std::uint32_t number = 0;
           std::memcpy(&number, one.data(), sizeof number);
           return number > 0 && number <= 64 && (mask >> (number - 1) & 1) == 0;
         });
}

Result<std::string> space_of(pid_t process) {
  return read_link(fmt::format("/proc/{}/ns/pid", process));
}

bool is_in_space(pid_t process, const std::string& space) {
  const auto its = space_of(process);
  return its && *its == space;
}

std::string task_directory(pid_t process, pid_t thread) {
  return fmt::format("/proc/{}/task/{}", process, thread);
}

// Returns whether a thread that could not be attached to is still one that should be. It may have
// ended meanwhile, or have been attached by the kernel, because the process that has just made it
// was.
bool can_be_attached(pid_t process, pid_t thread) {
  const auto now = status_of(task_directory(process, thread));
  return now && now->state != 'Z' && now->state != 'X' && now->tracer_here != ::getpid();
}

// Attaches to a thread. One that has just begun a program has taken the place of one that had
// ended, to which nobody could attach.
Status attach_in_time(Attacher& attacher, pid_t process, pid_t thread) {
  constexpr int kTries = 6;
  Status attached = attacher.attach(process, thread);
  for (int tries = 1; !attached && tries < kTries && can_be_attached(process, thread); ++tries) {
    ::usleep(200);
    attached = attacher.attach(process, thread);
  }
  return attached;
}

bool has_ended(pid_t process, pid_t thread) {
  const auto now = status_of(task_directory(process, thread));
  return !now || now->state == 'Z' || now->state == 'X';
}

// Lets go of a thread that should stand still. One that does not will stop, and is let go by
// next_end() then.
Status let_go(pid_t thread) {
  Status done = detach(thread);
  if (!done && done.error().os_errno == ESRCH) (void)ask_to_stop(thread);
  return done;
}

}  // namespace

std::uint64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

Result<std::vector<pid_t>> processes_with(pid_t first) {
  DIAPAUSE_TRY_ASSIGN(const std::string space, space_of(first));
  DIAPAUSE_TRY_ASSIGN(const std::vector<pid_t> all, numbers_in("/proc"));
  std::vector<pid_t> members;
  for (const pid_t process : all) {
    if (is_in_space(process, space)) members.push_back(process);
  }
  return members;
}

bool is_with(pid_t process, pid_t first) {
  const auto space = space_of(first);
  return space && is_in_space(process, *space);
}

namespace {

// Adds the processes that descend from `parent`, and that are not among `members` yet, to them.
// Returns whether the kernel lists the children of processes.
bool add_descendants(pid_t parent, std::set<pid_t>& members) {
  bool has_list = false;
  for (const pid_t thread :
       numbers_in(fmt::format("/proc/{}/task", parent)).value_or(std::vector<pid_t>{})) {
    const auto text = read_proc(task_directory(parent, thread) + "/children");
    if (!text) continue;  // the thread has ended, or there is no such file
    has_list = true;
    std::istringstream words(*text);
    for (pid_t child = 0; words >> child;) {
      if (members.insert(child).second) add_descendants(child, members);
    }
  }
  return has_list;
}

}  // namespace

// Looks at the children of processes, because a look at all processes of the machine would take
// most of the time for which a small job stands still. A process that loses its parent meanwhile
// becomes a child of `first`, so `first` is looked at twice. A process that has joined the
// namespace from outside is found among `known_` only.
Result<std::vector<pid_t>> FrozenJob::members_of(pid_t first) const {
  std::set<pid_t> members = {first};
  for (int look = 0; look < 2; ++look) {
    if (!add_descendants(first, members)) return processes_with(first);
  }
  DIAPAUSE_TRY_ASSIGN(const std::string space, space_of(first));
  for (const pid_t process : known_) {
    if (!members.contains(process) && is_in_space(process, space)) members.insert(process);
  }
  return std::vector<pid_t>(members.begin(), members.end());
}

Result<FrozenJob> FrozenJob::freeze(pid_t first, TimedCalls& timed, bool foresees) {
  FrozenJob job;
  job.first_ = first;
  job.timed_ = &timed;
  if (foresees) {
    DIAPAUSE_TRY_ASSIGN(const std::vector<pid_t> processes, processes_with(first));
    job.foresight_ = Foresight::of(processes);
  }
  DIAPAUSE_TRY(job.note_waits(first));
  DIAPAUSE_TRY(job.stop_all(first));
  job.monotonic_ns_ = process::monotonic_ns();
  for (FrozenProcess& process : job.processes_) DIAPAUSE_TRY(job.look(process));
  std::ranges::sort(job.processes_, {}, [](const FrozenProcess& one) { return one.status.id; });
  return job;
}

Status FrozenJob::confirm_foresight() const {
  for (const FrozenProcess& process : processes_)
    DIAPAUSE_TRY(foresight_.confirm(process.here, process.here));
  return {};
}

FrozenJob::~FrozenJob() { (void)thaw(); }

// Notes since when the threads have been waiting. Must be called before any of them is stopped,
// because a stop ends a wait.
Status FrozenJob::note_waits(pid_t first) {
  cpu_set_t before;
  if (::sched_getaffinity(0, sizeof before, &before) != 0) return {};
  std::map<std::uint64_t, std::optional<std::uint64_t>> offsets;
  DIAPAUSE_TRY_ASSIGN(known_, processes_with(first));
  for (const pid_t process : known_) {
    const auto threads = numbers_in(fmt::format("/proc/{}/task", process));
    if (process == first || !threads) continue;
    for (const pid_t thread : *threads) {
      const auto run = last_run(task_directory(process, thread));
      const auto stat = StatFields::of(thread);
      if (!run || !stat) continue;
      constexpr std::size_t kProcessor = 39;
      const auto [offset, is_new] = offsets.try_emplace(stat->number(kProcessor));
      if (is_new) offset->second = clock_offset_ns(offset->first);
      if (offset->second) waits_[thread] = {run->ran_ns + *offset->second, run->waits};
    }
  }
  ::sched_setaffinity(0, sizeof before, &before);
  return {};
}

// Returns since when a thread has been waiting (CLOCK_MONOTONIC in nanoseconds), or 0 if that is
// not known. It is not known if the thread has begun another wait since note_waits() looked at it.
std::uint64_t FrozenJob::waits_since(pid_t process, pid_t thread) const {
  const auto noted = waits_.find(thread);
  const auto now = noted == waits_.end() ? std::nullopt : last_run(task_directory(process, thread));
  // A stop by this process counts as one more wait.
  return now && now->waits <= noted->second.count + 1 ? noted->second.since_ns : 0;
}

// Repeats until a pass finds no new threads. Stopped processes make no new ones.
Status FrozenJob::stop_all(pid_t first) {
  DIAPAUSE_TRY_ASSIGN(Attacher attacher, Attacher::make());
  since_s_ = sys::monotonic_s();
  std::vector<pid_t> before;
  for (bool is_new = true; is_new;) {
    zombies_.clear();
    DIAPAUSE_TRY_ASSIGN(const std::vector<pid_t> members, members_of(first));
    is_new = members != before;
    before = members;
    for (const pid_t process : members) {
      if (process == first) continue;
      const auto status = status_of(fmt::format("/proc/{}", process));
      if (!status) continue;  // the process has ended
      if (status->state == 'Z' || status->state == 'X') {
        if (numbers_in(fmt::format("/proc/{}/task", process))
                .value_or(std::vector<pid_t>{})
                .size() > 1) {
          // A process that is ending looks the same for a moment.
          return fail(
              Code::again,
              fmt::format("process {} ({}) goes on in other threads than its first, which has "
                          "ended: that cannot be restored yet",
                          status->id, status->name));
        }
        zombies_.push_back({process, *status});
        continue;
      }
      // A parent may wait in vfork until its child has started a program. It could not stop if the
      // child had stopped before it.
      const pid_t parent = status->parent_here;
      if (parent > process && parent != first && !is_stopped(parent) &&
          std::ranges::binary_search(members, parent)) {
        is_new = true;
        continue;
      }
      DIAPAUSE_TRY_ASSIGN(const bool stopped, stop_new(attacher, process, *status));
      is_new = is_new || stopped;
    }
  }
  return {};
}

bool FrozenJob::is_stopped(pid_t process) const {
  return std::ranges::find(processes_, process, &FrozenProcess::here) != processes_.end();
}

// Stops the threads of a process that are not stopped yet. Returns whether there were any.
Result<bool> FrozenJob::stop_new(Attacher& attacher, pid_t process, const ProcStatus& status) {
  auto known = std::ranges::find_if(processes_,
                                    [&](const FrozenProcess& one) { return one.here == process; });
  if (known == processes_.end()) {
    processes_.push_back({process, status, {}, std::nullopt, 0, status.state == 'T'});
    known = processes_.end() - 1;
  }
  std::vector<pid_t> fresh;
  bool has_changed = false;  // since its threads were listed
  for (const pid_t thread :
       numbers_in(fmt::format("/proc/{}/task", process)).value_or(std::vector<pid_t>{})) {
    const bool is_known = std::ranges::any_of(
        known->threads, [&](const FrozenThread& one) { return one.name.here == thread; });
    if (is_known) continue;
    const auto of_thread = status_of(task_directory(process, thread));
    if (!of_thread || of_thread->state == 'Z' || of_thread->state == 'X') continue;
    Status asked;
    if (of_thread->tracer_here == 0) {
      if (const Status attached = attach_in_time(attacher, process, thread); !attached) {
        const bool should_be = can_be_attached(process, thread);
        if (should_be && attached.error().os_errno == EPERM) {
          return fail(Code::denied,
                      fmt::format("process {} ({}) {}", status.id, status.name, kHiddenProcess));
        }
        if (should_be) return fail(attached.error());
        has_changed = true;
        continue;
      }
      asked = ask_to_stop(thread);
      has_changed = has_changed || !asked;
      if (!asked && has_ended(process, thread)) continue;
    } else if (of_thread->tracer_here != ::getpid()) {
      return fail(Code::denied,
                  fmt::format("process {} ({}) is traced by process {}: let that one go first",
                              status.id, status.name, of_thread->tracer_here));
    }
    known->threads.push_back({});
    known->threads.back().name = {thread, of_thread->id, of_thread->thread_id};
    if (!asked) return fail(std::move(asked.error()));
    fresh.push_back(thread);
  }
  DIAPAUSE_TRY(await_threads(*known, fresh));
  if (known->threads.empty()) processes_.erase(known);
  return has_changed || !fresh.empty();
}

// Waits until threads of a process have stopped, in turns: one that starts a program waits for
// those that it has ended to be waited for, wherever they stand in the list.
Status FrozenJob::await_threads(FrozenProcess& process, std::vector<pid_t> threads) {
  constexpr double kTurn_s = 0.02;
  const double end_s = sys::monotonic_s() + kStopLimit_s;
  while (!threads.empty()) {
    std::vector<pid_t> left;
    for (const pid_t thread : threads) {
      auto lives = await_stillness(thread, kTurn_s);
      const bool is_late = !lives && lives.error().code == Code::timeout;
      if (is_late && sys::monotonic_s() < end_s) {
        left.push_back(thread);
        bury_ended_threads(process.here);
        // The thread may have begun a program since it was asked, and forgotten it.
        (void)ask_to_stop(thread);
        continue;
      }
      if (is_late) {
        lives.error().message = fmt::format(
            "process {} ({}) cannot be stopped now: it waits for a program that a child of "
            "it is starting, or for a device",
            process.status.id, process.status.name);
      }
      if (!lives) return fail(std::move(lives.error()));
      if (!*lives)
        std::erase_if(process.threads,
                      [&](const FrozenThread& one) { return one.name.here == thread; });
    }
    threads = std::move(left);
  }
  return {};
}

// Notes until when a call goes on whose end only the kernel knows, also for the next freeze: the
// kernel then tells only that it has begun the call anew.
void FrozenJob::note_end(pid_t process, FrozenThread& thread) {
  if (thread.call == SYS_restart_syscall) {
    const auto known = timed_->find(thread.name.here);
    if (known != timed_->end() && known->second.stack == thread.registers.rsp) {
      thread.call = known->second.call;
      thread.end_ns = known->second.end_ns;
      return;
    }
    std::array<std::byte, 9> code{};
    const bool is_read{read_any_memory(process, thread.registers.rip - code.size(), code)};
    thread.call = is_read ? number_before_call(code) : -1;
  }
  const auto length_ns = length_of_call(process, thread.call, thread.registers);
  if (!length_ns) return;
  const bool is_known = thread.slept_since_ns != 0 && thread.slept_since_ns < monotonic_ns_;
  const std::uint64_t since_ns = is_known ? thread.slept_since_ns : monotonic_ns_;
  thread.end_ns = *length_ns == kForever ? kForever : since_ns + *length_ns;
  (*timed_)[thread.name.here] = {thread.registers.rsp, thread.call, *thread.end_ns};
}

Status FrozenJob::look(FrozenProcess& process) {
  DIAPAUSE_TRY_ASSIGN(process.status, status_of(fmt::format("/proc/{}", process.here)));
  std::ranges::sort(process.threads, {}, [&](const FrozenThread& one) {
    return std::pair(one.name.thread != process.status.id, one.name.thread);
  });
  for (FrozenThread& thread : process.threads) {
    auto registers = registers_of(thread.name.here);
    if (!registers && registers.error().code == Code::argument) {
      registers.error().message = fmt::format("process {} ({}) {}", process.status.id,
                                              process.status.name, registers.error().message);
    }
    DIAPAUSE_TRY_ASSIGN(thread.registers, std::move(registers));
    DIAPAUSE_TRY_ASSIGN(thread.mask, signal_mask_of(thread.name.here));
    thread.is_known = true;
    DIAPAUSE_TRY_ASSIGN(thread.sequence, sequence_area_of(thread.name.here));
    if (thread.sequence.address != 0) {
      thread.section_address = thread.sequence.address + 8;  // offset of rseq_cs in struct rseq
      DIAPAUSE_TRY(read_memory(process.here, thread.section_address,
                               std::as_writable_bytes(std::span(&thread.section, 1))));
    }
    thread.call = call_under_way(thread.registers);
    const bool is_timed = is_until_time_of_kernel(thread.registers);
    const bool is_made_again =
        result_of(thread.registers) == kInterrupted && is_ended_by_interruption(thread.call);
    if (is_timed || is_made_again)
      thread.slept_since_ns = waits_since(process.here, thread.name.here);
    if (is_made_again && thread.slept_since_ns != 0 && thread.slept_since_ns < monotonic_ns_) {
      const std::uint64_t waited_ns = monotonic_ns_ - thread.slept_since_ns;
      thread.rest = rest_of_wait(process.here, thread.call, thread.registers, waited_ns);
    }
    if (is_timed) note_end(process.here, thread);
  }
  return {};
}

// A call that a signal has ended is not made again, because the program's handler is about to run.
Registers registers_to_go_on_with(const FrozenThread& thread) {
  Registers registers = thread.registers;
  if (result_of(registers) != kInterrupted || !is_ended_by_interruption(thread.call))
    return registers;
  const bool has_signal =
      has_open_signal(waiting_signals_of(thread.name.here, Queue::thread), thread.mask) ||
      has_open_signal(waiting_signals_of(thread.name.here, Queue::process), thread.mask);
  if (has_signal) return registers;
  wind_back(registers);
  if (thread.rest) set_argument(registers, thread.rest->argument, thread.rest->value);
  return registers;
}

Status FrozenJob::plant(FrozenProcess& process) {
  if (process.calls) return {};
  if (!tie_) {
    DIAPAUSE_TRY_ASSIGN(Tie tie, Tie::to(first_));
    tie_.emplace(std::move(tie));
  }
  DIAPAUSE_TRY_ASSIGN(process.instruction, find_call_instruction_of(process.here));
  DIAPAUSE_TRY_ASSIGN(const std::vector<Mapping> mappings, places_of(process.here));
  // The address is in the lowest gap that is large enough, with a margin on both sides.
  std::uint64_t address = 0x100000;
  for (const Mapping& one : mappings) {
    if (one.begin >= address + Calls::kBytes + kPageBytes) break;
    address = std::max(address, one.end + 16 * kPageBytes);
  }
  for (FrozenThread& thread : process.threads) thread.is_touched = true;
  auto planted = Calls::plant(process.leader().name, address, process.instruction);
  if (!planted) {
    planted.error().message =
        fmt::format("process {} ({}) has no room for the calls that it is to do for us: {}",
                    process.status.id, process.status.name, planted.error().message);
    return fail(std::move(planted.error()));
  }
  process.calls = *planted;
  return {};
}

Status FrozenJob::put_back(FrozenProcess& process) {
  Status result;
  const auto note = [&](Status done) {
    if (result && !done) result = std::move(done);
  };
  if (process.calls) note(process.calls->remove(process.leader().name, process.instruction));
  process.calls.reset();
  for (FrozenThread& thread : process.threads) {
    if (!thread.is_known) continue;  // the freeze has failed before
    const pid_t here = thread.name.here;
    const Registers registers = registers_to_go_on_with(thread);
    if (thread.is_touched) {
      note(stop_for_signals(here));
      if (thread.section != 0)
        note(write_memory(process.here, thread.section_address, as_byte_view(thread.section)));
    }
    thread.is_touched = false;
    note(set_registers(here, registers));
    note(set_signal_mask(here, thread.mask));
  }
  return result;
}

Status FrozenJob::put_back_all() {
  Status result;
  for (FrozenProcess& process : processes_) {
    Status done = put_back(process);
    if (result && !done) result = std::move(done);
  }
  return result;
}

Status FrozenJob::put_back() {
  Status result = put_back_all();
  Status untied = untie();
  return result ? std::move(untied) : std::move(result);
}

Status FrozenJob::untie() {
  Status done = tie_ ? tie_->end() : Status{};
  tie_.reset();
  return done;
}

// Everything is put back once more, because signals may have come since the last time. The job does
// not wait until process 1 is let go.
Status FrozenJob::thaw() {
  Status result = put_back_all();
  for (const FrozenProcess& process : processes_) {
    for (const FrozenThread& thread : process.threads) {
      Status done = let_go(thread.name.here);
      if (result && !done) result = std::move(done);
    }
  }
  processes_.clear();
  Status untied = untie();
  return result ? std::move(untied) : std::move(result);
}

void FrozenJob::end() const {
  for (const FrozenProcess& process : processes_) ::kill(process.here, SIGKILL);
}

}  // namespace diapause::process
