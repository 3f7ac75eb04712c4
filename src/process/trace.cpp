#include "process/trace.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>

#include "process/proc.hpp"
#include "sys/process.hpp"

namespace diapause::process {
namespace {

constexpr double kCallLimit_s = 10;
constexpr std::size_t kMostExtendedBytes = std::size_t{64} * 1024;
constexpr unsigned long kOptions =
    PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK;

tl::unexpected<Error> trace_error(pid_t thread, const char* what, int error) {
  return fail(os_error(fmt::format("thread {}: {}", thread, what), error));
}

// ptrace takes and returns numbers and addresses in the same parameters.
void* as_pointer(unsigned long value) { return reinterpret_cast<void*>(value); }

Status request(int number, pid_t thread, unsigned long address, void* data, const char* what) {
  if (::ptrace(static_cast<__ptrace_request>(number), thread, as_pointer(address), data) == 0)
    return {};
  return trace_error(thread, what, errno);
}

Status transfer_memory(pid_t process, std::uint64_t address, MutableBytes bytes, bool is_write) {
  while (!bytes.empty()) {
    iovec here{bytes.data(), bytes.size()};
    iovec there{as_pointer(address), bytes.size()};
    const ssize_t moved = is_write ? ::process_vm_writev(process, &here, 1, &there, 1, 0)
                                   : ::process_vm_readv(process, &here, 1, &there, 1, 0);
    if (moved <= 0) {
      const int error = moved == 0 ? EFAULT : errno;
      return fail(os_error(fmt::format("process {}: memory at {:#x}", process, address), error));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(moved));
    address += static_cast<std::uint64_t>(moved);
  }
  return {};
}

// A process that ends gives its memory back first. Its file for memory then belongs to root, so
// that other users are told that they have no leave to open it.
Error ended(pid_t process) {
  return os_error(fmt::format("process {} has ended, and its memory is gone", process), ESRCH);
}

Status transfer_any_memory(pid_t process, std::uint64_t address, MutableBytes bytes,
                           bool is_write) {
  const std::string path = fmt::format("/proc/{}/mem", process);
  const int file = ::open(path.c_str(), (is_write ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  if (file < 0) {
    const int error = errno;
    return fail(has_memory(process) ? os_error("opening " + path, error) : ended(process));
  }
  int error = 0;
  while (!bytes.empty() && error == 0) {
    const auto offset = static_cast<off_t>(address);
    const ssize_t moved = is_write ? ::pwrite(file, bytes.data(), bytes.size(), offset)
                                   : ::pread(file, bytes.data(), bytes.size(), offset);
    if (moved <= 0) {
      error = moved == 0 ? EIO : errno;
      break;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(moved));
    address += static_cast<std::uint64_t>(moved);
  }
  ::close(file);
  if (error == 0) return {};
  if (!has_memory(process)) return fail(ended(process));
  return fail(os_error(fmt::format("process {}: memory at {:#x}", process, address), error));
}

MutableBytes without_const(ByteView bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

}  // namespace

Status attach(pid_t thread) {
  return request(PTRACE_SEIZE, thread, 0, as_pointer(kOptions), "cannot be attached to");
}

Status attach_to_end_with_us(pid_t thread) {
  return request(PTRACE_SEIZE, thread, 0, as_pointer(kOptions | PTRACE_O_EXITKILL),
                 "cannot be attached to");
}

Status ask_to_stop(pid_t thread) {
  return request(PTRACE_INTERRUPT, thread, 0, nullptr, "cannot be stopped");
}

namespace {

// waitid() tells of a traced thread that has stopped even if it is asked for ends alone.
bool is_end(const siginfo_t& seen) {
  return seen.si_code == CLD_EXITED || seen.si_code == CLD_KILLED || seen.si_code == CLD_DUMPED;
}

// Returns whether a thread has ended that the kernel does not tell of yet: the first thread of a
// process can only be waited for when the others have ended, too.
bool has_ended_unseen(pid_t thread) {
  const auto now = status_of(fmt::format("/proc/{}", thread));
  return !now || now->state == 'Z' || now->state == 'X';
}

// Tells of a thread that has ended.
Stop end_of(pid_t thread) {
  // How a child of this process has ended is for Keeper::exit_status() to find out.
  const auto now = status_of(fmt::format("/proc/{}", thread));
  if (!now || now->parent_here != ::getpid()) bury_if_ended(thread);
  return {true, 0, 0};
}

}  // namespace

// Most stops come within microseconds, in which this thread looks again and again. It then sleeps
// until a signal says that something has happened to a child: one that yields the processor instead
// gets it back only when others, which may compute beside the job, have used up their time.
Result<Stop> await_stop(pid_t thread, double limit_s) {
  constexpr int kLooks = 20;
  const double end_s = sys::monotonic_s() + limit_s;
  for (int look = 0;; ++look) {
    siginfo_t seen{};
    const auto id = static_cast<id_t>(thread);
    if (::waitid(P_PID, id, &seen, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL) != 0) {
      if (errno == ECHILD) return Stop{true, 0, 0};
      return trace_error(thread, "cannot be waited for", errno);
    }
    if (seen.si_pid == thread && !is_end(seen)) {
      if (::waitid(P_PID, id, &seen, WSTOPPED | WNOHANG | __WALL) != 0 || seen.si_pid != thread)
        continue;
      return Stop{false, seen.si_status & 0xff, seen.si_status >> 8};
    }
    if (seen.si_pid == thread) return end_of(thread);
    if (look < kLooks) continue;
    if (has_ended_unseen(thread)) return end_of(thread);
    if (sys::monotonic_s() > end_s)
      return fail(Code::timeout, fmt::format("thread {} does not stop", thread));
    sigset_t of_children;
    sigemptyset(&of_children);
    sigaddset(&of_children, SIGCHLD);
    const timespec longest{0, 1'000'000};  // the signal may be of another child
    ::sigtimedwait(&of_children, nullptr, &longest);
  }
}

// The end of a thread is not taken for a stop: until it was waited for, nothing else has its
// number.
void bury_if_ended(pid_t thread) {
  siginfo_t seen{};
  const auto id = static_cast<id_t>(thread);
  if (::waitid(P_PID, id, &seen, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0) return;
  if (seen.si_pid == thread && is_end(seen)) ::waitid(P_PID, id, &seen, WEXITED | WNOHANG | __WALL);
}

namespace {

// Lets go of a child that was just made by vfork. Its parent cannot stop before the child has
// started a program or ended, and the kernel has attached the child to this process as well.
Status let_child_go(pid_t parent) {
  unsigned long child = 0;
  DIAPAUSE_TRY(request(PTRACE_GETEVENTMSG, parent, 0, &child, "does not tell what it has made"));
  DIAPAUSE_TRY_ASSIGN(const Stop born, await_stop(static_cast<pid_t>(child), kCallLimit_s));
  if (born.has_ended) return {};
  return detach(static_cast<pid_t>(child));
}

}  // namespace

Result<bool> await_stillness(pid_t thread, double limit_s) {
  const double end_s = sys::monotonic_s() + limit_s;
  for (;;) {
    DIAPAUSE_TRY_ASSIGN(const Stop stop, await_stop(thread, end_s - sys::monotonic_s()));
    if (stop.has_ended) return false;
    if (stop.event == PTRACE_EVENT_STOP) return true;
    if (stop.event == PTRACE_EVENT_VFORK) DIAPAUSE_TRY(let_child_go(thread));
    // The thread has stopped for a signal that was on its way, or for a child that was just made,
    // and the kernel has forgotten what it was asked. One that makes children all the time would
    // never stand still.
    (void)ask_to_stop(thread);  // it may have been killed, which the next stop tells
    DIAPAUSE_TRY(run_on(thread, stop.event == 0 ? stop.signal & 0x7f : 0));
  }
}

Status run_on(pid_t thread, int signal) {
  return request(PTRACE_CONT, thread, 0, as_pointer(static_cast<unsigned long>(signal)),
                 "cannot be run on");
}

Status detach(pid_t thread) {
  return request(PTRACE_DETACH, thread, 0, nullptr, "cannot be let go");
}

std::optional<siginfo_t> next_end() {
  for (;;) {
    siginfo_t seen{};
    if (::waitid(P_ALL, 0, &seen, WEXITED | WSTOPPED | WNOHANG | __WALL) != 0 || seen.si_pid == 0)
      return std::nullopt;
    if (is_end(seen)) return seen;
    const int event = seen.si_status >> 8, signal = seen.si_status & 0x7f;
    const int to_deliver = event == 0 && signal != SIGTRAP ? signal : 0;
    (void)request(PTRACE_DETACH, seen.si_pid, 0, as_pointer(static_cast<unsigned long>(to_deliver)),
                  "cannot be let go");
  }
}

Result<Registers> registers_of(pid_t thread) {
  Registers registers{};
  iovec place{&registers, sizeof registers};
  DIAPAUSE_TRY(
      request(PTRACE_GETREGSET, thread, NT_PRSTATUS, &place, "its registers cannot be read"));
  if (place.iov_len == sizeof registers) return registers;
  return fail(Code::argument, "is a 32-bit program, which cannot be checkpointed");
}

Status set_registers(pid_t thread, const Registers& registers) {
  iovec place{const_cast<Registers*>(&registers), sizeof registers};
  return request(PTRACE_SETREGSET, thread, NT_PRSTATUS, &place, "its registers cannot be set");
}

Result<ByteVector> extended_registers_of(pid_t thread) {
  ByteVector bytes(kMostExtendedBytes);
  iovec place{bytes.data(), bytes.size()};
  DIAPAUSE_TRY(request(PTRACE_GETREGSET, thread, NT_X86_XSTATE, &place,
                       "its vector registers cannot be read"));
  bytes.resize(place.iov_len);
  return bytes;
}

Status set_extended_registers(pid_t thread, ByteView data) {
  iovec place{without_const(data).data(), data.size()};
  return request(PTRACE_SETREGSET, thread, NT_X86_XSTATE, &place,
                 "its vector registers cannot be set");
}

Result<std::uint64_t> signal_mask_of(pid_t thread) {
  std::uint64_t mask = 0;
  DIAPAUSE_TRY(
      request(PTRACE_GETSIGMASK, thread, sizeof mask, &mask, "its signal mask cannot be read"));
  return mask;
}

Status set_signal_mask(pid_t thread, std::uint64_t mask) {
  return request(PTRACE_SETSIGMASK, thread, sizeof mask, &mask, "its signal mask cannot be set");
}

Result<SequenceArea> sequence_area_of(pid_t thread) {
  __ptrace_rseq_configuration found{};
  const long got = ::ptrace(PTRACE_GET_RSEQ_CONFIGURATION, thread, sizeof found, &found);
  if (got < 0) return trace_error(thread, "its restartable sequences cannot be asked for", errno);
  return SequenceArea{found.rseq_abi_pointer, found.rseq_abi_size, found.signature};
}

Result<std::vector<ByteVector>> waiting_signals_of(pid_t thread, Queue queue) {
  std::vector<ByteVector> signals;
  for (;;) {
    siginfo_t found{};
    __ptrace_peeksiginfo_args ask{};
    ask.off = signals.size();
    ask.flags = queue == Queue::process ? PTRACE_PEEKSIGINFO_SHARED : 0;
    ask.nr = 1;
    const long got = ::ptrace(PTRACE_PEEKSIGINFO, thread, &ask, &found);
    if (got < 0) return trace_error(thread, "its waiting signals cannot be read", errno);
    if (got == 0) return signals;
    const ByteView bytes = as_byte_view(found);
    signals.emplace_back(bytes.begin(), bytes.end());
  }
}

namespace {

// Returns the signal that a thread in calls for us has to get when it goes on. All others are
// masked. The process stands still when it is let go.
int signal_to_hand_on(const Stop& stop) {
  return stop.event == 0 && stop.signal == SIGSTOP ? SIGSTOP : 0;
}

Status run_to_call(pid_t thread, int signal) {
  return request(PTRACE_SYSCALL, thread, 0, as_pointer(static_cast<unsigned long>(signal)),
                 "cannot be run to a call");
}

}  // namespace

Result<std::int64_t> call_at(pid_t thread, std::uint64_t instruction, const Call& call) {
  DIAPAUSE_TRY_ASSIGN(const Registers before, registers_of(thread));
  DIAPAUSE_TRY(set_registers(thread, registers_for_call(call, instruction, before)));
  // The kernel stops the thread before and after the call.
  int signal = 0;
  for (int stops = 0; stops < 2;) {
    DIAPAUSE_TRY(run_to_call(thread, signal));
    DIAPAUSE_TRY_ASSIGN(const Stop stop, await_stop(thread, kCallLimit_s));
    if (stop.has_ended)
      return fail(Code::internal, fmt::format("thread {} ended in a call for us", thread));
    if (stop.event == 0 && stop.signal == (SIGTRAP | 0x80)) ++stops;
    signal = signal_to_hand_on(stop);
  }
  DIAPAUSE_TRY_ASSIGN(const Registers after, registers_of(thread));
  return result_of(after);
}

Status enter_call(pid_t thread) {
  for (int signal = 0;;) {
    DIAPAUSE_TRY(run_to_call(thread, signal));
    DIAPAUSE_TRY_ASSIGN(const Stop stop, await_stop(thread, kCallLimit_s));
    if (stop.has_ended)
      return fail(Code::internal, fmt::format("thread {} ended in a call for us", thread));
    if (stop.event == 0 && stop.signal == (SIGTRAP | 0x80)) return {};
    signal = signal_to_hand_on(stop);
  }
}

Status run_table(pid_t thread, std::vector<pid_t>* made) {
  for (int signal = 0;;) {
    DIAPAUSE_TRY(run_on(thread, signal));
    DIAPAUSE_TRY_ASSIGN(const Stop stop, await_stop(thread, kCallLimit_s));
    if (stop.has_ended)
      return fail(Code::internal, fmt::format("thread {} ended in calls for us", thread));
    if (stop.event == 0 && stop.signal == SIGTRAP) return {};
    signal = signal_to_hand_on(stop);
    if (stop.event == 0 && signal == 0) {
      return fail(Code::internal,
                  fmt::format("thread {} got signal {} in calls for us", thread, stop.signal));
    }
    const bool is_birth = stop.event == PTRACE_EVENT_CLONE || stop.event == PTRACE_EVENT_FORK;
    if (!is_birth || made == nullptr) continue;
    unsigned long child = 0;
    DIAPAUSE_TRY(request(PTRACE_GETEVENTMSG, thread, 0, &child, "does not tell what it has made"));
    made->push_back(static_cast<pid_t>(child));
  }
}

Result<Registers> leave_code(pid_t thread, std::uint64_t begin, std::uint64_t end,
                             std::uint32_t most_steps) {
  DIAPAUSE_TRY_ASSIGN(Registers registers, registers_of(thread));
  for (std::uint32_t step = 0; step < most_steps; ++step) {
    if (registers.rip < begin || registers.rip >= end) break;
    DIAPAUSE_TRY(request(PTRACE_SINGLESTEP, thread, 0, nullptr, "cannot be run on"));
    DIAPAUSE_TRY_ASSIGN(const Stop stop, await_stop(thread, kCallLimit_s));
    if (stop.has_ended)
      return fail(Code::again, fmt::format("thread {} has ended during the checkpoint", thread));
    DIAPAUSE_TRY_ASSIGN(registers, registers_of(thread));
    if (stop.event != 0 || stop.signal != SIGTRAP) break;
  }
  return registers;
}

Status stop_for_signals(pid_t thread) {
  DIAPAUSE_TRY(ask_to_stop(thread));
  DIAPAUSE_TRY(run_on(thread));
  DIAPAUSE_TRY_ASSIGN(const bool lives, await_stillness(thread, kCallLimit_s));
  if (!lives) return fail(Code::internal, fmt::format("thread {} has ended", thread));
  return {};
}

void end_traced(pid_t process) {
  ::kill(process, SIGKILL);
  int status = 0;
  for (;;) {
    const pid_t ended = ::waitpid(process, &status, __WALL);
    if (ended < 0 && errno != EINTR) return;
    if (ended == process && !WIFSTOPPED(status)) return;
  }
}

Status end_with_tracer(pid_t thread) {
  return request(PTRACE_SETOPTIONS, thread, 0, as_pointer(kOptions | PTRACE_O_EXITKILL),
                 "cannot be tied to us");
}

Result<Tie> Tie::to(pid_t process) {
  DIAPAUSE_TRY(attach_to_end_with_us(process));
  return Tie(process);
}

// Only a process that has stopped can be let go.
Status Tie::end() {
  if (process_ == 0) return {};
  const pid_t process = std::exchange(process_, 0);
  DIAPAUSE_TRY(ask_to_stop(process));
  DIAPAUSE_TRY_ASSIGN(const bool lives, await_stillness(process, kCallLimit_s));
  return lives ? detach(process) : Status{};
}

Status read_memory(pid_t process, std::uint64_t address, MutableBytes to) {
  return transfer_memory(process, address, to, false);
}
Status write_memory(pid_t process, std::uint64_t address, ByteView from) {
  return transfer_memory(process, address, without_const(from), true);
}
Status read_any_memory(pid_t process, std::uint64_t address, MutableBytes to) {
  return transfer_any_memory(process, address, to, false);
}
Status write_any_memory(pid_t process, std::uint64_t address, ByteView from) {
  return transfer_any_memory(process, address, without_const(from), true);
}

}  // namespace diapause::process
