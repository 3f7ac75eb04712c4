// Handles signals that ask the program to stop.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.hpp"

namespace diapause::sys {

std::string signal_name(int number);  // "SIGTERM"
std::optional<int> signal_number(const std::string& name);

// Handles signals during its lifetime. The class is not thread-safe, but the signals may arrive at
// any time and in any thread.
class StopSignals {
 public:
  virtual ~StopSignals() = default;

  // From this call on, these signals are recorded instead of having their default effect. A handler
  // that the program installed before is still called. May be called once.
  virtual Status take(std::span<const int> numbers) = 0;

  // Returns the first of the handled numbers that has arrived since take(), or 0.
  virtual int received() const = 0;
};

// Returns the signals of this process. Several objects may live at a time, and each sees every
// signal. When the last one that handled a signal is destroyed, the signal has its former effect
// again, unless the program has installed another handler meanwhile, which then stays.
std::unique_ptr<StopSignals> process_stop_signals();

}  // namespace diapause::sys
