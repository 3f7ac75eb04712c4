// The actuator that the settings name, with what it needs.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/log.hpp"
#include "config/settings.hpp"
#include "governor/actuator.hpp"
#include "governor/watchdog.hpp"

namespace diapause::governor {

struct ActuatorPlaces {
  sys::Kernel& kernel;
  std::string sysfs;
  LogSink log;
};

// In the order in which they go: the actuator, then the watchdog, then what both work on.
struct ActuatorParts {
  std::optional<Controls> controls;
  std::optional<Watchdog> watchdog;  // of actuators whose values would outlast the process
  std::unique_ptr<Actuator> actuator;
};

// `automatic` is the first of cpufreq, powercap and uclamp that finds something to slow in `where`. What earlier jobs
// left on this node is put back before. Fails, and says what of, if there is no such actuator or no watchdog.
Result<std::unique_ptr<ActuatorParts>> make_actuator(const config::GovernorSettings& settings,
                                                     const ActuatorPlaces& places, const Where& where);

// Puts back what processes that are gone left, and says so in the log. For `diapause power restore`, too.
Result<Controls::Outcome> put_back_leftovers(sys::Kernel& kernel, Controls& controls);

}  // namespace diapause::governor
