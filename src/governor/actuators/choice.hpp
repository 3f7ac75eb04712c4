// Makes the actuator that the settings name, with the objects that it needs.
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

// The actuator and its parts. They are destroyed in this order: the actuator, the watchdog, then
// the controls that both work on.
struct ActuatorParts {
  std::optional<Controls> controls;
  std::optional<Watchdog> watchdog;  // for actuators whose values would outlast the process
  std::unique_ptr<Actuator> actuator;
};

// Makes the actuator. `automatic` is the first of cpufreq, powercap and uclamp that finds something
// to slow in `where`. Settings that earlier jobs left on this node are restored before. Fails with
// the reason if there is no such actuator or no watchdog.
Result<std::unique_ptr<ActuatorParts>> make_actuator(const config::GovernorSettings& settings,
                                                     const ActuatorPlaces& places,
                                                     const Where& where);

// Restores settings that ended processes have left, and logs that. `diapause power restore` uses it
// as well.
Result<Controls::Outcome> put_back_leftovers(sys::Kernel& kernel, Controls& controls);

}  // namespace diapause::governor
