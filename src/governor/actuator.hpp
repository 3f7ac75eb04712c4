// What slows cores or threads, and lets them run again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "governor/controls.hpp"

namespace diapause::governor {

// What is slowed. Actuators of cores take only what lies wholly within `cpus`: other jobs may run on the rest.
struct Where {
  std::vector<std::uint32_t> cpus;    // in order
  std::vector<std::int64_t> threads;  // of this job, as the kernel numbers them
};

// What an actuator is.
struct Traits {
  std::string_view name;
  // Whether its ratio is one of clocks, so that times at two ratios tell how much of them scales with the clock.
  bool sets_clock;
  // Whether it slows cores, and whoever runs on them, or only the threads it is given.
  bool slows_cores;
};

class Actuator {
 public:
  virtual ~Actuator() = default;
  virtual Traits traits() const = 0;
  // Fails if there is nothing there that it could slow, or not for us. Changes nothing.
  virtual Status check(const Where& where) = 0;
  // Slows to `ratio` of the base clock; the ratio obtained, of the least slowed. On failure nothing is slowed.
  virtual Result<double> slow(const Where& where, double ratio) = 0;
  // Undoes slow(). What could not be undone is in the error; nothing to undo is fine.
  virtual Status restore() = 0;
};

// For actuators that write values into files: which, for a ratio. Controls writes them.
struct Plan {
  std::vector<Setting> settings;
  std::vector<double> full;  // of each setting: the value that is the base clock
};
class Planner {
 public:
  virtual ~Planner() = default;
  virtual Traits traits() const = 0;
  virtual Status check(const Where& where) = 0;  // as Actuator::check
  // Fails if there is nothing to set, or not for us, and says why.
  virtual Result<Plan> plan(const Where& where, double ratio) = 0;
};

}  // namespace diapause::governor
