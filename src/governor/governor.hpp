// Slows the cores during phases of a checkpoint that need not be fast, where that saves energy, and
// restores their speed afterwards. There is one governor per node and job, in the process that acts
// for the node.
//
//   Governor governor = ...;
//   {
//     auto phase = governor.begin_phase({.name = "global", .kind = PhaseKind::write, .bytes = n,
//                                        .scope = Scope::engine});
//     ... write ...
//     phase.succeeded();
//   }  // runs as before again
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "config/settings.hpp"
#include "policy/throttle.hpp"
#include "sys/kernel.hpp"

namespace diapause::governor {

// The cores to slow: all of the job's on this node, because the whole job waits; or those that the
// calling thread may run on, so that the program keeps its speed.
enum class Scope { job, engine };

// The properties of a phase that begins.
struct PhaseStart {
  std::string name;  // Phases of one name are alike: what is learnt from one is used for the next.
  policy::PhaseKind kind = policy::PhaseKind::write;
  std::uint64_t bytes = 0;                                 // bytes that it works on
  double due_s = std::numeric_limits<double>::infinity();  // seconds until it must be over
  Scope scope = Scope::engine;
};

// Ratios of the base clock. The obtained ratio is measured where the processors' counters can be
// read, and is elsewhere the limit that was set.
struct Ratios {
  double asked = 1;
  double obtained = 1;

  bool are_slowed() const { return asked < 1; }
};

// The outcome of the last phase of a name.
struct PhaseReport {
  std::string name;
  policy::Why why = policy::Why::off;
  double asked = 1;  // a ratio of the base clock
  // This is one, too. It is above 1 if the processors ran above the base clock and their counters
  // told.
  double obtained = 1;
  double seconds = 0;
  std::optional<double> phi;  // empty if it is unknown
};

// The place of the governor, and its sources of information.
struct Environment {
  sys::Kernel* kernel = nullptr;  // must outlive the governor
  std::string sysfs = "/sys";
  std::vector<std::int64_t> processes;  // the processes of this job on this node
  std::vector<std::uint32_t> cpus;      // processors that these may use, in ascending order
  // A model of the node's power due to a phase on such cores. If it is empty or gives no result,
  // the power is unknown.
  std::function<std::optional<policy::NodePower>(policy::PhaseKind, Scope)> node_power = {};
  // Joules of the whole node from one moment of clock_s to another, as known now; nullopt if they
  // are not known. With both moments alike it takes a reading. The function is empty if there is no
  // counter.
  std::function<std::optional<double>(double from_s, double to_s)> node_joules = {};
  // Gives monotonic seconds. If it is empty, the clock of the machine is used.
  std::function<double()> clock_s = {};
  LogSink log;
};

class Governor;

// Guards a phase: it is held as long as the phase lasts.
class [[nodiscard]] PhaseGuard {
 public:
  PhaseGuard() = default;  // for a phase that is not governed
  PhaseGuard(PhaseGuard&& other) noexcept;
  PhaseGuard& operator=(PhaseGuard&&) = delete;
  ~PhaseGuard();  // everything runs as before again

  // Reports that the phase did all of its work, so that its time is worth learning from.
  void succeeded() { has_succeeded_ = true; }
  // Returns what was asked for, and what was obtained so far.
  Ratios ratios() const;

 private:
  friend class Governor;
  PhaseGuard(Governor& governor, Ratios ratios) : governor_(&governor), ratios_(ratios) {}
  Governor* governor_ = nullptr;
  Ratios ratios_;
  bool has_succeeded_ = false;
};

// Several threads may use a governor. One phase at a time is governed; phases that begin meanwhile
// are not. The governor must outlive its phases.
class Governor {
 public:
  // Makes a governor. With the policy `off` nothing is opened or started, and begin_phase() costs a
  // comparison. Possible failures are found here as far as possible: the actuator must find
  // something to set, and the watchdog must run. A governor that cannot work logs why, and is off.
  static std::unique_ptr<Governor> create(const config::GovernorSettings& settings,
                                          Environment environment);
  ~Governor();

  PhaseGuard begin_phase(const PhaseStart& start);

  // Returns why nothing is slowed any more; empty if the governor works or is off.
  std::string trouble() const;
  // Returns the name of the actuator; "" if there is none.
  std::string actuator() const;
  // Returns a report for each name, in the order of their first phases.
  std::vector<PhaseReport> report() const;

 private:
  struct Parts;
  friend class PhaseGuard;

  explicit Governor(std::unique_ptr<Parts> parts);
  void end_phase(bool has_succeeded);
  Ratios ratios_so_far() const;

  mutable std::mutex mutex_;
  std::unique_ptr<Parts> parts_;  // null if the governor is off
};

}  // namespace diapause::governor
