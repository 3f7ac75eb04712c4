// A process that puts everything back when the job dies, by whatever signal: the job cannot do it itself then. It is
// the command `diapause power watch`, started by the governor before the first value is written.
#pragma once

#include <string>

#include "base/result.hpp"
#include "governor/journal.hpp"
#include "sys/kernel.hpp"
#include "sys/lifeline.hpp"

namespace diapause::governor {

// The job's end.
class Watchdog {
 public:
  // `command` is the command `diapause`. Without a watchdog nothing may be slowed.
  static Result<Watchdog> start(const std::string& command, const std::string& state_path, const Owner& owner);

  // What the owner wants holds for so many seconds at most: the watchdog puts it back then, whatever the job does.
  // Fails if there is no watchdog any more.
  Status limit(double seconds);
  Status no_limit();

 private:
  explicit Watchdog(sys::Lifeline lifeline) : lifeline_(std::move(lifeline)) {}
  sys::Lifeline lifeline_;
};

// The watchdog's end: returns when the owner is gone and everything it wanted is put back, or cannot be. To be called
// in the process that Watchdog::start started. `owner` is as to_text gives it.
Status keep_watch(sys::Kernel& kernel, const std::string& state_path, const std::string& owner);

}  // namespace diapause::governor
