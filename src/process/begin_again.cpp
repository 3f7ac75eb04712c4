#include "process/begin_again.hpp"

#include <sys/syscall.h>

#include <algorithm>

#include "process/trace.hpp"

namespace diapause::process {
namespace {

constexpr std::uint64_t kAllSignals = ~std::uint64_t{0};

bool has_ended(const sys::EndedThread& thread) {
  std::uint32_t id = 0;
  const Status read =
      read_memory(thread.process, thread.id_at, std::as_writable_bytes(std::span(&id, 1)));
  return read && id == 0;
}

// The thread is made by the first one of its process, whose files and rights it shares.
Status begin(FrozenJob& job, const sys::EndedThread& thread) {
  const auto process = std::ranges::find(job.processes(), thread.process, &FrozenProcess::here);
  if (process == job.processes().end() || !has_ended(thread)) return {};
  DIAPAUSE_TRY(job.plant(*process));
  const Call clone{
      SYS_clone, {sys::kFlagsOfThread, 0, thread.id_at, thread.id_at, thread.thread_area}, 0};
  DIAPAUSE_TRY_ASSIGN(const Calls::Birth born,
                      process->calls->birth(process->leader().name, clone));
  DIAPAUSE_TRY_ASSIGN(const Registers before, registers_of(born.here));
  DIAPAUSE_TRY(set_registers(
      born.here, registers_to_begin_with(thread.entry, thread.stack, thread.thread_area, before)));
  DIAPAUSE_TRY(set_signal_mask(born.here, kAllSignals));
  return detach(born.here);
}

}  // namespace

Status begin_again(pid_t first, TimedCalls& timed, std::span<const sys::EndedThread> threads) {
  DIAPAUSE_TRY_ASSIGN(FrozenJob job, FrozenJob::freeze(first, timed, false));
  Status begun;
  for (const sys::EndedThread& one : threads) {
    if (begun) begun = begin(job, one);
  }
  Status thawed = job.thaw();
  return begun ? std::move(thawed) : std::move(begun);
}

}  // namespace diapause::process
