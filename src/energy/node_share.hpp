// Decides which part of a node's energy a job has used, where other programs used the node too. No
// meter can tell programs apart, so the energy is divided by processor time
// (docs/energy-account.md).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sys/value_file.hpp"

namespace diapause::energy {

// The seconds of processor time that were used on a node.
struct ProcessorTimes {
  double job_s = 0;
  double others_s = 0;  // used by other programs and by the kernel
};

// These are the processes of a job on a node.
struct JobProcesses {
  std::vector<std::int64_t> ids;
  // All processes that they start belong to the job, too. Otherwise these count among the others.
  bool have_descendants = false;
};

// Reads the processor time of a job's processes and of their whole node. The class is not
// thread-safe.
class ProcessorTimeReader {
 public:
  // `processes` are the ids of the job's processes on this node, and `root` stands before the
  // node's /proc/stat. Fails if that or the time of a process cannot be read, as in a container
  // that hides other processes. `kernel` must outlive the reader.
  static Result<ProcessorTimeReader> open(sys::Kernel& kernel, const std::string& root,
                                          JobProcesses processes);

  // Returns the time that was used since the last call, or since open(). Without descendants, a
  // process that has ended counts until the last call before its end. The kernel counts the time of
  // a node in ticks, so that of a short interval may be off by a tick for each processor.
  Result<ProcessorTimes> since_last();

 private:
  struct Clock {
    std::int64_t process = 0;
    double last_s = 0;
  };
  ProcessorTimeReader(sys::Kernel& kernel, sys::ValueFile stat)
      : kernel_(kernel), stat_(std::move(stat)) {}
  Result<double> busy_s() const;
  double job_s();
  double families_s();

  std::reference_wrapper<sys::Kernel> kernel_;
  sys::ValueFile stat_;
  std::vector<Clock> clocks_;           // of processes without their descendants
  std::vector<std::int64_t> families_;  // processes that count with their descendants
  double last_families_s_ = 0;
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
