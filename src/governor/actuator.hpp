// The interface of actuators, which slow cores or threads and restore their speed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "governor/controls.hpp"

namespace diapause::governor {

// The cores and threads to slow. Actuators of cores take only units that lie completely within
// `cpus`, because other jobs may run on the rest.
struct Where {
  std::vector<std::uint32_t> cpus;    // in ascending order
  std::vector<std::int64_t> threads;  // threads of this job, by the kernel's numbers
};

// The properties of an actuator.
struct Traits {
  std::string_view name;
  // Tells whether its ratio is one of clocks, so that times at two ratios tell which share scales
  // with the clock.
  bool sets_clock;
  // Tells whether it slows cores, and everything that runs on them, or only the given threads.
  bool slows_cores;
  // Tells whether the processor's own clock changes, so that its counters tell what was obtained.
  bool is_real = false;
  // Tells whether a ratio of 1 keeps processors from running above the base clock.
  bool limits_turbo = false;
};

class Actuator {
 public:
  virtual ~Actuator() = default;
  virtual Traits traits() const = 0;
  // Fails if there is nothing that this process could slow. Changes nothing.
  virtual Status check(const Where& where) = 0;
  // Slows to `ratio` of the base clock; 1 is the base clock itself. Returns the ratio obtained for
  // the least slowed unit. On failure nothing is slowed.
  virtual Result<double> slow(const Where& where, double ratio) = 0;
  // Undoes slow(). The error names what could not be undone; it is no error if there is nothing to
  // undo.
  virtual Status restore() = 0;
};

// The settings of an actuator that writes values into files, for one ratio. Controls writes them.
struct Plan {
  std::vector<Setting> settings;
  std::vector<double> full;  // For each setting, the value that means the base clock.
};
class Planner {
 public:
  virtual ~Planner() = default;
  virtual Traits traits() const = 0;
  virtual Status check(const Where& where) = 0;  // the same as Actuator::check()
  // Returns the settings for a ratio. Fails with the reason if there is nothing that this process
  // can set.
  virtual Result<Plan> plan(const Where& where, double ratio) = 0;
};

}  // namespace diapause::governor
