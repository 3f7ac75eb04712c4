// A process that restores everything if the job dies by any signal, because the job cannot do it
// then. It is the command `diapause power watch`, started by the governor before the first value is
// written.
#pragma once

#include <string>

#include "base/result.hpp"
#include "governor/journal.hpp"
#include "sys/kernel.hpp"
#include "sys/lifeline.hpp"

namespace diapause::governor {

// The job's end of the connection to the watchdog.
class Watchdog {
 public:
  // `command` is the command `diapause`. Without a watchdog nothing may be slowed.
  static Result<Watchdog> start(const std::string& command, const std::string& state_path,
                                const Owner& owner);

  // Limits the duration of the owner's requests to so many seconds: after that the watchdog
  // restores everything, whatever the job does. Fails if the watchdog has ended.
  Status limit(double seconds);
  Status no_limit();

 private:
  explicit Watchdog(sys::Lifeline lifeline) : lifeline_(std::move(lifeline)) {}
  sys::Lifeline lifeline_;
};

// Runs the watchdog. Returns when the owner has ended and everything that it requested is restored,
// or cannot be. Must be called in the process that Watchdog::start() started. `owner` is a text of
// to_text().
Status keep_watch(sys::Kernel& kernel, const std::string& state_path, const std::string& owner);

}  // namespace diapause::governor
