// Dumps and restores processes that a signal such as SIGSTOP has stopped, as job control does.
#include <fmt/core.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "process/dump_parts.hpp"
#include "process/restore_parts.hpp"

namespace diapause::process {
namespace {

constexpr int kMostLooks = 10'000;  // each takes 0.1 ms

bool has_child_signal(const Process& process) {
  return std::ranges::any_of(process.waiting_signals, [](const ByteVector& one) {
    std::uint32_t number = 0;
    std::memcpy(&number, one.data(), std::min(one.size(), sizeof number));
    return number == SIGCHLD;
  });
}

// Returns whether the kernel signals a parent when a child of it is stopped.
bool is_signalled(const Process& parent) {
  constexpr std::uint64_t kIgnored = 1;  // SIG_IGN
  const SignalAction& action = parent.actions[SIGCHLD - 1];
  return action.handler != kIgnored && (action.flags & SA_NOCLDSTOP) == 0;
}

// Waits until all threads have stopped, which is when the parent can be told.
Status await_stop_of(const Made& made) {
  for (int look = 0; look < kMostLooks; ++look) {
    const bool has_stopped = std::ranges::all_of(made.threads, [](const ThreadName& one) {
      const auto now = status_of(fmt::format("/proc/{}", one.here));
      return now && now->state == 'T';
    });
    if (has_stopped) return {};
    ::usleep(100);
  }
  return fail(Code::timeout, fmt::format("process {} does not stop", made.stored->id));
}

// Masks all signals of a process. One that waits could end it before it has stopped: the kernel
// delivers those with lower numbers than SIGSTOP first.
Status mask_signals(const Made& made) {
  for (const ThreadName& thread : made.threads)
    DIAPAUSE_TRY(set_signal_mask(thread.here, ~std::uint64_t{0}));
  return {};
}

// Gives a process that stands still, and that nobody traces, its own masks again.
Status restore_masks(const Made& made) {
  constexpr double kLimit_s = 10;
  for (std::size_t i = 0; i < made.threads.size(); ++i) {
    const pid_t here = made.threads[i].here;
    DIAPAUSE_TRY(attach(here));
    DIAPAUSE_TRY(ask_to_stop(here));
    DIAPAUSE_TRY_ASSIGN(const bool lives, await_stillness(here, kLimit_s));
    if (!lives) {
      return fail(Code::internal,
                  fmt::format("process {}, which was stopped, has ended", made.stored->id));
    }
    DIAPAUSE_TRY(set_signal_mask(here, made.stored->threads[i].signal_mask));
    DIAPAUSE_TRY(detach(here));
  }
  return {};
}

// The parent is told of the stop a second time, and must not see that. The kernel tells it a moment
// after the last thread has stopped.
Status hide_from_parent(const RestoreWork& work, const Made& parent,
                        const StoppedProcess& stopped) {
  const bool has_signal = !is_signalled(*parent.stored) || has_child_signal(*parent.stored);
  if (!has_signal) DIAPAUSE_TRY(take_child_signal(work, parent.leader()));
  if (!stopped.is_told) return {};
  const std::uint64_t room = work.calls.room();
  const Call wait{SYS_waitid, {P_PID, stopped.process, room, WSTOPPED | WNOHANG | __WALL, 0}, 0};
  for (int look = 0; look < kMostLooks; ++look) {
    siginfo_t found{};
    DIAPAUSE_TRY(call_with(work, parent.leader(), as_byte_view(found), wait));
    DIAPAUSE_TRY(
        read_memory(parent.leader().here, room, std::as_writable_bytes(std::span(&found, 1))));
    if (found.si_pid != 0) return {};
    ::usleep(100);
  }
  return fail(Code::timeout, fmt::format("the parent of process {} is not told that it has stopped",
                                         stopped.process));
}

}  // namespace

Status dump_stops(DumpWork& work) {
  for (const FrozenProcess& one : work.frozen.processes()) {
    if (!one.was_stopped) continue;
    StoppedProcess stopped{one.status.id, true};
    const auto parent =
        std::ranges::find(work.frozen.processes(), one.status.parent_here, &FrozenProcess::here);
    if (parent != work.frozen.processes().end()) {
      const std::uint64_t room = parent->calls->room(), how = WSTOPPED | WNOHANG | WNOWAIT | __WALL;
      siginfo_t found{};
      DIAPAUSE_TRY(write_memory(parent->here, room, as_byte_view(found)));
      DIAPAUSE_TRY(parent->calls->one(parent->leader().name,
                                      {SYS_waitid, {P_PID, one.status.id, room, how, 0}, 0}));
      DIAPAUSE_TRY(read_memory(parent->here, room, std::as_writable_bytes(std::span(&found, 1))));
      stopped.is_told = found.si_pid == 0;
    }
    work.result.job.stopped.push_back(stopped);
  }
  return {};
}

// Lets go of the processes that are to stand still, while their parents can still be made to do
// calls. Children come before their parents.
Status restore_stops(RestoreWork& work) {
  for (auto made = work.made.rbegin(); made != work.made.rend(); ++made) {
    const auto stopped =
        std::ranges::find(work.job.stopped, made->stored->id, &StoppedProcess::process);
    if (stopped == work.job.stopped.end()) continue;
    DIAPAUSE_TRY(finish_threads(work, *made));
    DIAPAUSE_TRY(mask_signals(*made));
    if (::kill(made->leader().here, SIGSTOP) != 0)
      return fail(os_error("stopping a process again", errno));
    for (const ThreadName& thread : made->threads) DIAPAUSE_TRY(detach(thread.here));
    DIAPAUSE_TRY(await_stop_of(*made));
    const auto parent = std::ranges::find_if(
        work.made, [&](const Made& one) { return one.stored->id == made->stored->parent; });
    if (parent != work.made.end()) DIAPAUSE_TRY(hide_from_parent(work, *parent, *stopped));
    DIAPAUSE_TRY(restore_masks(*made));
  }
  std::erase_if(work.made, [&](const Made& one) {
    return std::ranges::find(work.job.stopped, one.stored->id, &StoppedProcess::process) !=
           work.job.stopped.end();
  });
  return {};
}

}  // namespace diapause::process
