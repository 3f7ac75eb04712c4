// Reads a counter of a performance monitoring unit, for everything that runs on one processor.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace diapause::sys {

class PerfCounter {
 public:
  // `type` and `config` are the values from the unit's folder in /sys/bus/event_source/devices;
  // `what` names the counter in errors. This needs kernel.perf_event_paranoid <= 0 or CAP_PERFMON,
  // and fails with Code::denied otherwise.
  static Result<PerfCounter> open(Kernel& kernel, std::uint32_t type, std::uint64_t config, int cpu,
                                  const std::string& what);
  Result<std::uint64_t> count() const;  // since it was opened

 private:
  explicit PerfCounter(File file) : file_(std::move(file)) {}
  File file_;
};

}  // namespace diapause::sys
