// What a process that looks after a job waits for: signals, the end of its children, and somebody who knocks. For the
// command only: blocks signals of the calling thread.
#pragma once

#include <csignal>
#include <optional>
#include <vector>

#include "base/result.hpp"

namespace diapause::process {

struct Event {
  bool has_knocked = false;  // at the descriptor that was given
  bool is_child = false;     // one of them has ended
  int signal = 0;            // to be handed on; 0: none
};

// One per process; to be made before there are other threads.
class Watch {
 public:
  // From here on signals wait for wait().
  static Result<Watch> begin();
  Watch(Watch&& other) noexcept;
  Watch& operator=(Watch&&) = delete;
  ~Watch();  // signals do what they did before

  const sigset_t& mask_before() const { return mask_before_; }
  // Until something comes; nullopt after `most_s`. `door`: a descriptor that somebody may knock at; -1: none.
  std::optional<Event> wait(int door, std::optional<double> most_s);

 private:
  Watch(int signals, const sigset_t& mask_before) : signals_(signals), mask_before_(mask_before) {}
  int signals_;
  sigset_t mask_before_;
};

}  // namespace diapause::process
