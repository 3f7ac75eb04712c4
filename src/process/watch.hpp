// Waits for the events of a process that looks after a job: signals, the end of its children, and
// requests at a descriptor. Only the command may use this, because it blocks signals of the calling
// thread.
#pragma once

#include <csignal>
#include <optional>
#include <vector>

#include "base/result.hpp"

namespace diapause::process {

struct Event {
  bool has_knocked = false;     // at the descriptor that was given
  bool is_child = false;        // one of them has ended
  int signal = 0;               // the signal that has come; 0 if none has
  bool is_of_terminal = false;  // the terminal has sent it to all processes in its foreground
};

// There is one object per process, and it must be made before the process has other threads.
class Watch {
 public:
  // From this call on, signals are kept for wait().
  static Result<Watch> begin();
  Watch(Watch&& other) noexcept;
  Watch& operator=(Watch&&) = delete;
  ~Watch();  // signals do what they did before

  const sigset_t& mask_before() const { return mask_before_; }
  // Waits until something happens, and returns nullopt after `most_s`. `door` is a descriptor at
  // which requests arrive; -1 stands for none.
  std::optional<Event> wait(int door, std::optional<double> most_s);

 private:
  Watch(int signals, const sigset_t& mask_before) : signals_(signals), mask_before_(mask_before) {}
  int signals_;
  sigset_t mask_before_;
};

}  // namespace diapause::process
