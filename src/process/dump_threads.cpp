// Dumps the threads of a frozen process.
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "process/dump_parts.hpp"
#include "process/schedule.hpp"

namespace diapause::process {
namespace {

// Turns a call whose end time only the kernel knows into one that can be begun anew.
void take_down_call(DumpWork& work, const FrozenProcess& frozen, const FrozenThread& thread,
                    Registers& registers, Thread& to) {
  if (!is_until_time_of_kernel(registers)) return;
  if (!thread.end_ns) {
    work.refuse(
        frozen.status,
        fmt::format("is in a call (thread {}) whose rest cannot be found out", thread.name.thread));
    return;
  }
  registers.orig_rax = static_cast<std::uint64_t>(thread.call);
  if (*thread.end_ns == kForever) {
    wind_back(registers);
    return;
  }
  to.timed_call = thread.call;
  const std::uint64_t now_ns = work.frozen.monotonic_ns();
  to.left_ns = *thread.end_ns > now_ns ? *thread.end_ns - now_ns : 0;
}

// Makes the thread itself do the system calls for what no other thread can ask the kernel: its
// alternative signal stack, and the address that set_tid_address has set.
Status ask_thread(const FrozenProcess& frozen, const FrozenThread& thread, Thread& to) {
  const std::uint64_t room = frozen.calls->room();
  struct Answers {
    stack_t stack;
    std::uint64_t cleared_address;
  } answers{};
  std::vector<Call> calls = {
      {SYS_sigaltstack, {0, room}, 0},
      {SYS_prctl, {PR_GET_TID_ADDRESS, room + offsetof(Answers, cleared_address)}, 0}};
  DIAPAUSE_TRY(frozen.calls->run(thread.name, calls));
  DIAPAUSE_TRY(read_memory(frozen.here, room, std::as_writable_bytes(std::span(&answers, 1))));
  to.stack_address = reinterpret_cast<std::uint64_t>(answers.stack.ss_sp);
  to.stack_bytes = answers.stack.ss_size;
  to.stack_flags = static_cast<std::uint32_t>(answers.stack.ss_flags);
  to.cleared_address = answers.cleared_address;
  return {};
}

Status dump_thread(DumpWork& work, FrozenProcess& frozen, FrozenThread& thread, Thread& to) {
  const pid_t here = thread.name.here;
  to.id = thread.name.thread;
  DIAPAUSE_TRY_ASSIGN(to.name, read_proc(fmt::format("/proc/{}/task/{}/comm", frozen.here, here)));
  if (to.name.ends_with('\n')) to.name.pop_back();
  Registers registers = registers_to_go_on_with(thread);
  take_down_call(work, frozen, thread, registers, to);
  const ByteView bytes = as_byte_view(registers);
  to.registers.assign(bytes.begin(), bytes.end());
  DIAPAUSE_TRY_ASSIGN(to.extended_registers, extended_registers_of(here));
  to.signal_mask = thread.mask;
  to.sequence_address = thread.sequence.address;
  to.sequence_bytes = thread.sequence.size;
  to.sequence_signature = thread.sequence.signature;
  to.sequence_section = thread.section;
  DIAPAUSE_TRY_ASSIGN(to.waiting_signals, waiting_signals_of(here, Queue::thread));
  std::uint64_t list = 0, bytes_of_list = 0;
  if (::syscall(SYS_get_robust_list, here, &list, &bytes_of_list) != 0) {
    return fail(os_error(fmt::format("asking for the robust list of thread {}", to.id), errno));
  }
  to.robust_list = list;
  to.robust_list_bytes = bytes_of_list;
  return ask_thread(frozen, thread, to);
}

}  // namespace

Status dump_threads(DumpWork& work, FrozenProcess& frozen, Process& process) {
  const Schedule given = schedule_of(work.standard);
  for (FrozenThread& thread : frozen.threads) {
    DIAPAUSE_TRY(dump_thread(work, frozen, thread, process.threads.emplace_back()));
    Schedule own = own_part(schedule_of(thread.name.here), given);
    own.thread = thread.name.thread;
    if (!is_empty(own)) work.result.job.schedules.push_back(std::move(own));
  }
  return {};
}

}  // namespace diapause::process
