#include "process/begin_again.hpp"

#include <sched.h>
#include <sys/syscall.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "process/trace.hpp"

namespace diapause::process {
namespace {

constexpr double kBirthLimit_s = 10;
constexpr std::uint64_t kAllSignals = ~std::uint64_t{0};
// As pthread_create() has it.
constexpr std::uint64_t kFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                                 CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |
                                 CLONE_CHILD_CLEARTID;

bool is_missing(const LeftBehind& thread) {
  std::uint32_t id = 0;
  const Status read =
      read_memory(thread.process, thread.id_at, std::as_writable_bytes(std::span(&id, 1)));
  return read && id == 0;
}

// The thread is made by the first one of its process, whose files and rights it shares.
Status begin(FrozenJob& job, const LeftBehind& thread) {
  const auto process = std::ranges::find(job.processes(), thread.process, &FrozenProcess::here);
  if (process == job.processes().end() || !is_missing(thread)) return {};
  DIAPAUSE_TRY(job.plant(*process));
  const Call clone{SYS_clone, {kFlags, 0, thread.id_at, thread.id_at, thread.thread_area}, 0};
  std::vector<pid_t> made;
  DIAPAUSE_TRY(process->calls->one(process->leader().name, clone, &made));
  if (made.size() != 1) return fail(Code::internal, "a thread was not seen when it was made");
  const pid_t here = made.front();
  DIAPAUSE_TRY_ASSIGN(const bool lives, await_stillness(here, kBirthLimit_s));
  if (!lives) return fail(Code::internal, "a thread ended when it was made");
  DIAPAUSE_TRY_ASSIGN(const Registers before, registers_of(here));
  DIAPAUSE_TRY(set_registers(
      here, registers_to_begin_with(thread.entry, thread.stack, thread.thread_area, before)));
  DIAPAUSE_TRY(set_signal_mask(here, kAllSignals));
  return detach(here);
}

}  // namespace

Status begin_again(pid_t first, TimedCalls& timed, std::span<const LeftBehind> threads) {
  std::vector<LeftBehind> missing;
  std::ranges::copy_if(threads, std::back_inserter(missing), is_missing);
  if (missing.empty()) return {};
  DIAPAUSE_TRY_ASSIGN(FrozenJob job, FrozenJob::freeze(first, timed, false));
  Status begun;
  for (const LeftBehind& one : missing) {
    if (begun) begun = begin(job, one);
  }
  Status thawed = job.thaw();
  return begun ? std::move(thawed) : std::move(begun);
}

}  // namespace diapause::process
