// Decides which part of a node's energy a job has used, where other programs used the node too. No
// meter can tell programs apart, so the energy is divided by processor time
// (docs/energy-account.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sys/value_file.hpp"

namespace diapause::energy {

// The seconds of processor time that were used on a node.
struct ProcessorTimes {
  double job_s = 0;
  double others_s = 0;  // used by other programs and by the kernel
};

// Reads the processor time of a job's processes and of their whole node. The class is not
// thread-safe.
class ProcessorTimeReader {
 public:
  // `processes` are the ids of the job's processes on this node, and `root` stands before /proc.
  // Fails if /proc/stat or the clock of a process cannot be read, as in a container that hides
  // other processes.
  static Result<ProcessorTimeReader> open(sys::Kernel& kernel, const std::string& root,
                                          std::vector<std::int64_t> processes);

  // Returns the time that was used since the last call, or since open(). A process that has ended
  // counts until the last call before its end. The processes that a process of the job starts count
  // among the others. The kernel counts the time of a node in ticks, so that of a short interval
  // may be off by a tick for each processor.
  Result<ProcessorTimes> since_last();

 private:
  struct Clock {
    std::int64_t process = 0;
    double last_s = 0;
  };
  explicit ProcessorTimeReader(sys::ValueFile stat) : stat_(std::move(stat)) {}
  Result<double> busy_s() const;
  double job_s();

  sys::ValueFile stat_;
  std::vector<Clock> clocks_;
  double last_busy_s_ = 0;
};

// A job's part of a node's energy.
struct NodeShare {
  double share = 1;
  double off = 0;  // by how much the share may be off, either way
};

// Returns the job's part of the processor time that was used. If nothing was used, the job has all.
// A processor may draw more for one program than for another: `off` holds as long as a second of
// the one costs at most kMostPowerRatio times as much as a second of the other.
inline constexpr double kMostPowerRatio = 2;
NodeShare share_of(const ProcessorTimes& times);

}  // namespace diapause::energy
