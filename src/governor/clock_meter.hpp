// Measures at which clock processors really run. A limit says at most how fast they may.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sys/kernel.hpp"
#include "sys/perf_counter.hpp"

namespace diapause::governor {

// Reads the counters APERF and MPERF of x86 processors, through the kernel's performance counters
// of the unit `msr`. Both count while a processor is not idle, APERF with its clock and MPERF with
// the base clock.
class ClockMeter {
 public:
  // Opens the counters of at most kMostCpus of these processors, which are all set alike. `sysfs`
  // is usually "/sys". Without the counters, or without the right to read them, read() returns
  // nullopt.
  static constexpr std::size_t kMostCpus = 8;
  static ClockMeter open(sys::Kernel& kernel, const std::string& sysfs,
                         const std::vector<std::uint32_t>& cpus);

  // Counts so far, over all processors.
  struct Counts {
    std::uint64_t at_clock = 0, at_base = 0;
  };
  std::optional<Counts> read() const;

 private:
  struct Pair {
    sys::PerfCounter aperf, mperf;
  };
  std::vector<Pair> pairs_;
};

// Returns the mean ratio of the clock over the base clock between two readings; nullopt if one of
// them is not known, or if the processors were idle.
std::optional<double> clock_ratio(const std::optional<ClockMeter::Counts>& from,
                                  const std::optional<ClockMeter::Counts>& to);

}  // namespace diapause::governor
