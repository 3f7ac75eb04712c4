// Attaches to the threads of a process of which one may be starting a program.
#pragma once

#include <sys/types.h>

#include <ctime>
#include <memory>

#include "base/result.hpp"

namespace diapause::process {

// A thread that starts a program first ends the other threads of its process, and waits until those
// that are traced have been waited for. Until then the kernel lets nobody attach to a thread of
// that process, so this process, which traces them, would wait for ever. While it waits here, a
// timer therefore interrupts it, and a signal handler waits for the threads that have ended. The
// signal is SIGRTMAX, for which the process must have no other use. Only the thread that has made
// the object may use it, and only one object may exist.
class Attacher {
 public:
  static Result<Attacher> make();
  Attacher(Attacher&&) noexcept = default;
  Attacher& operator=(Attacher&&) = delete;
  ~Attacher();

  // Does what attach() of trace.hpp does, for a thread of `process`.
  Status attach(pid_t process, pid_t thread);

 private:
  explicit Attacher(std::unique_ptr<pid_t> process) : process_(std::move(process)) {}
  std::unique_ptr<pid_t> process_;  // for the signal handler; null: another object has taken over
  timer_t timer_{};
};

// Waits for the threads of a process that this process traces and that have ended. May be called by
// a signal handler.
void bury_ended_threads(pid_t process);

}  // namespace diapause::process
