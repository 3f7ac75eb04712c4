// Reads from /proc and /sys what a node does, for power that is modelled.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "energy/profile.hpp"
#include "sys/value_file.hpp"

namespace diapause::energy {

// Returns how many processors the node has, at least 1, whichever of them this process may use.
unsigned count_cpus(sys::Kernel& kernel, const std::string& root);

// The class is not thread-safe.
class ActivityReader {
 public:
  // `root` stands before /sys and /proc. `moved_bytes` are those that went through memory. The code
  // that moves them counts them, since no file tells, and the counter outlives the object. Fails if
  // /proc/stat cannot be read; what else is missing is not part of the activity.
  static Result<ActivityReader> open(sys::Kernel& kernel, std::string root,
                                     const std::atomic<std::uint64_t>& moved_bytes);

  // Returns what was done since the last call, or since open(). The utilisation comes from
  // /proc/stat, without the time that a hypervisor stole; a load average would count processes that
  // wait for a disk. Each call reads one clock, and the next call the next one, because on some
  // machines every reading interrupts a processor.
  Result<Activity> since_last(double now_s);

 private:
  struct Ticks {
    std::uint64_t busy = 0, all = 0;
  };
  struct Totals {
    Ticks ticks;
    std::uint64_t disk_bytes = 0, network_bytes = 0, memory_bytes = 0;
  };
  ActivityReader(sys::Kernel& kernel, std::string root,
                 const std::atomic<std::uint64_t>& moved_bytes, sys::ValueFile stat)
      : kernel_(kernel),
        root_(std::move(root)),
        moved_bytes_(moved_bytes),
        stat_(std::move(stat)) {}
  void find_devices();
  void find_clocks();
  Result<Totals> totals() const;
  Result<Ticks> ticks() const;
  std::uint64_t sum(const std::vector<sys::ValueFile>& files) const;
  std::uint64_t disk_bytes() const;
  void read_a_clock();

  sys::Kernel& kernel_;
  std::string root_;
  const std::atomic<std::uint64_t>& moved_bytes_;
  sys::ValueFile stat_;
  std::vector<sys::ValueFile> disks_;     // /sys/block/*/stat
  std::vector<sys::ValueFile> networks_;  // byte counters of adapters
  std::vector<sys::ValueFile> fabrics_;   // counters of 4 bytes of InfiniBand ports
  std::vector<sys::ValueFile> clocks_;
  std::vector<double> ghz_;  // last readings of clocks_
  std::size_t next_clock_ = 0;
  Totals last_;
  double last_time_s_ = 0;
};

}  // namespace diapause::energy
