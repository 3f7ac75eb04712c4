#include "governor/actuators/choice.hpp"

#include <fmt/core.h>

#include "governor/actuators/cpufreq.hpp"
#include "governor/actuators/dry_run.hpp"
#include "governor/actuators/emulated.hpp"
#include "governor/actuators/files.hpp"
#include "governor/actuators/powercap.hpp"
#include "governor/actuators/uclamp.hpp"
#include "sys/process.hpp"
#include "sys/tasks.hpp"
#include "sys/value_file.hpp"

namespace diapause::governor {
namespace {

using config::ActuatorKind;

Result<Owner> make_owner(sys::Kernel& kernel) {
  Owner owner{sys::process_id(), 0, 0};
  DIAPAUSE_TRY_ASSIGN(owner.start_ticks, sys::start_ticks(kernel, owner.process));
  DIAPAUSE_TRY(sys::random_bytes(std::as_writable_bytes(std::span(&owner.number, 1))));
  return owner;
}

Result<std::unique_ptr<Planner>> make_planner(ActuatorKind kind, const ActuatorPlaces& places,
                                              const Owner& owner, Controls& controls) {
  if (kind == ActuatorKind::cpufreq) return plan_cpufreq(places.kernel, places.sysfs);
  if (kind == ActuatorKind::powercap) return plan_powercap(places.kernel, places.sysfs);
  DIAPAUSE_TRY_ASSIGN(std::string own_groups, sys::read_value(places.kernel, "/proc/self/cgroup"));
  return plan_emulated(places.kernel, {places.sysfs, std::move(own_groups), owner}, controls);
}

using Made = Result<std::unique_ptr<ActuatorParts>>;

Made make_in_files(const config::GovernorSettings& settings, ActuatorKind kind,
                   const ActuatorPlaces& places, const Where& where) {
  auto parts = std::make_unique<ActuatorParts>();
  DIAPAUSE_TRY_ASSIGN(const std::string boot, sys::boot_id(places.kernel));
  DIAPAUSE_TRY_ASSIGN(parts->controls, Controls::open(places.kernel, settings.state_path, boot));
  DIAPAUSE_TRY_ASSIGN(const Owner owner, make_owner(places.kernel));
  DIAPAUSE_TRY_ASSIGN(auto planner, make_planner(kind, places, owner, *parts->controls));
  DIAPAUSE_TRY(planner->check(where));
  DIAPAUSE_TRY_ASSIGN(const auto leftovers, put_back_leftovers(places.kernel, *parts->controls));
  if (const std::string text = to_text(leftovers); !text.empty()) {
    places.log(Severity::warning, "controls that earlier jobs left changed: " + text);
  }
  DIAPAUSE_TRY_ASSIGN(Watchdog watchdog,
                      Watchdog::start(settings.watchdog, settings.state_path, owner));
  parts->watchdog.emplace(std::move(watchdog));
  parts->actuator = make_file_actuator(std::move(planner), *parts->controls, owner);
  return parts;
}

Made make(const config::GovernorSettings& settings, ActuatorKind kind, const ActuatorPlaces& places,
          const Where& where) {
  if (kind != ActuatorKind::uclamp && kind != ActuatorKind::dry_run) {
    return make_in_files(settings, kind, places, where);
  }
  auto parts = std::make_unique<ActuatorParts>();
  parts->actuator = kind == ActuatorKind::uclamp
                        ? make_utilisation_cap(places.kernel, kernel_cap_calls())
                        : make_dry_run(places.log);
  DIAPAUSE_TRY(parts->actuator->check(where));
  return parts;
}

}  // namespace

Result<std::unique_ptr<ActuatorParts>> make_actuator(const config::GovernorSettings& settings,
                                                     const ActuatorPlaces& places,
                                                     const Where& where) {
  if (settings.actuator != ActuatorKind::automatic)
    return make(settings, settings.actuator, places, where);
  std::string reasons;
  for (const ActuatorKind kind :
       {ActuatorKind::cpufreq, ActuatorKind::powercap, ActuatorKind::uclamp}) {
    auto made = make(settings, kind, places, where);
    if (made) return made;
    reasons += (reasons.empty() ? "" : "; ") + made.error().message;
  }
  return fail(Code::not_found, "nothing here can slow a core: " + reasons);
}

Result<Controls::Outcome> put_back_leftovers(sys::Kernel& kernel, Controls& controls) {
  return controls.clean_up([&](const Owner& owner) {
    const auto ticks = sys::start_ticks(kernel, owner.process);
    return ticks ? *ticks != owner.start_ticks : ticks.error().code == Code::not_found;
  });
}

}  // namespace diapause::governor
