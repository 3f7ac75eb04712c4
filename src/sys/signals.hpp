// Signals by which somebody asks the program to stop.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.hpp"

namespace diapause::sys {

std::string signal_name(int number);  // "SIGTERM"
std::optional<int> signal_number(const std::string& name);

// Takes signals over for its lifetime. Not thread-safe; the signals may come at any time and in any thread.
class StopSignals {
 public:
  virtual ~StopSignals() = default;

  // From here on these signals are noted instead of what they do by default. A handler that the program has installed
  // before is still called. To be called once.
  virtual Status take(std::span<const int> numbers) = 0;

  // The first of the numbers taken that has come since; 0: none has.
  virtual int received() const = 0;
};

// Those of this process. Several may live at a time, and each sees every signal. When the last one that took a signal
// is gone, the signal does again what it did before, unless the program has installed another handler meanwhile: that
// stays.
std::unique_ptr<StopSignals> process_stop_signals();

}  // namespace diapause::sys
