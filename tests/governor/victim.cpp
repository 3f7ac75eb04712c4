// A program that slows phases until it is killed:
//   governor_victim cpufreq|emulated|with-child STATE_DIRECTORY WATCHDOG SYSFS
// "with-child" is cpufreq with a forked child that lives on, and has all files of its parent.
#include <unistd.h>

#include <chrono>
#include <string_view>
#include <thread>

#include "governor/governor.hpp"
#include "sys/process.hpp"

int main(int argc, char** argv) {
  using namespace diapause;
  if (argc != 5) return 2;
  config::GovernorSettings settings;
  settings.policy = config::ThrottlePolicy::fixed;
  settings.actuator = std::string_view(argv[1]) == "emulated" ? config::ActuatorKind::emulated
                                                              : config::ActuatorKind::cpufreq;
  settings.state_path = argv[2];
  settings.watchdog = argv[3];
  governor::Environment environment;
  environment.kernel = &sys::real_kernel();
  environment.sysfs = argv[4];
  environment.processes = {sys::process_id()};
  environment.cpus = {0, 1, 2, 3};
  environment.log = [](Severity, const std::string&) {};
  const auto governor = governor::Governor::create(settings, std::move(environment));
  governor::PhaseStart phase{.name = "write", .bytes = 1, .scope = governor::Scope::job};
  {
    auto first = governor->begin_phase(phase);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    first.succeeded();
  }
  if (std::string_view(argv[1]) == "with-child" && fork() == 0) {
    std::this_thread::sleep_for(std::chrono::seconds(60));
    return 0;
  }
  phase.bytes = 1000;  // a second, by what was learnt
  while (governor->trouble().empty()) {
    const auto slowed = governor->begin_phase(phase);
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
  return 1;
}
