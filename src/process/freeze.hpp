// A frozen job stands still. It has every thread of every process in the job's namespace, as seen
// from outside.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "process/attacher.hpp"
#include "process/calls.hpp"
#include "process/foresight.hpp"
#include "process/proc.hpp"
#include "process/trace.hpp"
#include "process/waits.hpp"

namespace diapause::process {

// These say which calls threads are in and when those are to end, by the thread's id here. The
// kernel does not tell it of calls that it has begun anew after an earlier freeze, or a restart.
struct TimedCall {
  std::uint64_t stack = 0;  // pointer, by which the same call is known again
  std::int64_t call = -1;
  std::uint64_t end_ns = 0;  // by CLOCK_MONOTONIC, or kForever
};
using TimedCalls = std::map<pid_t, TimedCall>;

struct FrozenThread {
  ThreadName name;
  Registers registers{};  // the registers when it stopped
  std::uint64_t mask = 0;
  // The call that it was stopped in, also where the kernel had begun it anew.
  std::int64_t call = -1;
  // These say where the kernel keeps the rseq section under way, and which it was.
  std::uint64_t section_address = 0;
  std::uint64_t section = 0;
  SequenceArea sequence;
  std::uint64_t slept_since_ns = 0;  // by CLOCK_MONOTONIC; 0 if it is not known
  // End of a call until a time that only the kernel knows, by CLOCK_MONOTONIC, or kForever. It is
  // not known for all such calls.
  std::optional<std::uint64_t> end_ns;
  std::optional<Rest> rest;  // for a call that is made again
  bool is_known = false;     // its registers and mask were read
  bool is_touched = false;   // its registers are not those any more
};

// Says why the kernel shows a process to nobody else, and what to do.
inline constexpr const char* kHiddenProcess =
    "runs a program that this user may run but not read, or that has hidden its memory from its "
    "user: make its file readable, or launch the job as root";

struct FrozenProcess {
  pid_t here = 0;
  ProcStatus status;
  std::vector<FrozenThread> threads;  // the leader first
  std::optional<Calls> calls;
  std::uint64_t instruction = 0;
  bool was_stopped = false;  // by a signal such as SIGSTOP or SIGTSTP, before we came
  bool is_watched = false;   // its memory, by our userfaultfd: class Changes

  FrozenThread& leader() { return threads.front(); }
  const FrozenThread& leader() const { return threads.front(); }
};

// Returns what a thread is to have in its registers when it goes on: calls that the freeze has
// ended are done again.
Registers registers_to_go_on_with(const FrozenThread& thread);

// This is an ended process that nobody has waited for.
struct Zombie {
  pid_t here = 0;
  ProcStatus status;
};

class FrozenJob {
 public:
  // Stops all processes in the PID namespace of process `first`, but that one. On failure all run
  // on. `timed` is from the last time. It must outlive the object, which adds to it. What can be is
  // looked at before, if `foresees`: foresight() then has to be confirmed.
  static Result<FrozenJob> freeze(pid_t first, TimedCalls& timed, bool foresees);
  FrozenJob(FrozenJob&&) noexcept = default;
  FrozenJob& operator=(FrozenJob&&) = delete;
  ~FrozenJob();  // thaws

  pid_t first() const { return first_; }
  std::vector<FrozenProcess>& processes() { return processes_; }
  const std::vector<Zombie>& zombies() const { return zombies_; }
  std::uint64_t monotonic_ns() const { return monotonic_ns_; }
  // Returns when the first of them was stopped, in seconds of sys::monotonic_s().
  double since_s() const { return since_s_; }
  TimedCalls& timed() { return *timed_; }
  Foresight& foresight() { return foresight_; }
  const Foresight& foresight() const { return foresight_; }
  // Confirms it by the processes themselves.
  Status confirm_foresight() const;

  // Makes a process ready to do calls for us. If this process dies from here on, all of the job
  // ends with it, and not the processes alone that are in the midst of such calls.
  Status plant(FrozenProcess& process);
  // Puts everything back as it was, but lets nothing run on yet. If this process dies from here on,
  // the job lives.
  Status put_back();
  // Lets all run on as if nothing had happened, and returns the first failure.
  Status thaw();
  // Ends all processes where they stand: none of them runs on.
  void end() const;

 private:
  FrozenJob() = default;
  Status note_waits(pid_t first);
  std::uint64_t waits_since(pid_t process, pid_t thread) const;
  Status stop_all(pid_t first);
  Result<std::vector<pid_t>> members_of(pid_t first) const;
  bool is_stopped(pid_t process) const;
  Result<bool> stop_new(Attacher& attacher, pid_t process, const ProcStatus& status);
  static Status await_threads(FrozenProcess& process, std::vector<pid_t> threads);
  Status look(FrozenProcess& process);
  void note_end(pid_t process, FrozenThread& thread);
  Status put_back(FrozenProcess& process);
  Status put_back_all();
  Status untie();

  Foresight foresight_;
  pid_t first_ = 0;
  std::optional<Tie> tie_;    // of process 1, while a process does calls for us
  std::vector<pid_t> known_;  // processes of the job, just before they were stopped
  std::vector<FrozenProcess> processes_;
  std::vector<Zombie> zombies_;
  struct Wait {
    std::uint64_t since_ns = 0, count = 0;
  };
  std::map<pid_t, Wait> waits_;  // waits of threads, just before they were stopped
  std::uint64_t monotonic_ns_ = 0;
  double since_s_ = 0;
  TimedCalls* timed_ = nullptr;
};

// Returns the time of CLOCK_MONOTONIC.
std::uint64_t monotonic_ns();

// Returns all processes here that are in the PID namespace of `first`, `first` among them.
Result<std::vector<pid_t>> processes_with(pid_t first);
// Returns whether a process, by its id here, is one of them.
bool is_with(pid_t process, pid_t first);

}  // namespace diapause::process
