// Slows the cores while a phase of a checkpoint runs that need not be fast, where that saves energy, and lets them run
// again afterwards. One per node and job: whoever acts for the node has it.
//
//   Governor governor = ...;
//   {
//     auto phase = governor.begin_phase({.name = "global", .kind = PhaseKind::write, .bytes = n, .scope =
//     Scope::engine});
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

// Whose cores are slowed: all of the job's on this node, because all of it waits; or those that the calling thread may
// run on, so that the program keeps its speed.
enum class Scope { job, engine };

// What a phase is, before it begins.
struct PhaseStart {
  std::string name;  // phases of one name are alike, and what is learnt of one is used for the next
  policy::PhaseKind kind = policy::PhaseKind::write;
  std::uint64_t bytes = 0;                                 // it works on
  double due_s = std::numeric_limits<double>::infinity();  // it has to be over by then
  Scope scope = Scope::engine;
};

// Of the base clock.
struct Ratios {
  double asked = 1;
  double obtained = 1;

  bool are_slowed() const { return asked < 1; }
};

// What became of the last phase of a name.
struct PhaseReport {
  std::string name;
  policy::Why why = policy::Why::off;
  double asked = 1;     // ratio of the base clock
  double obtained = 1;  // the same
  double seconds = 0;
  std::optional<double> phi;  // none: not known
};

// Where the governor is, and what it may know.
struct Environment {
  sys::Kernel* kernel = nullptr;  // must outlive the governor
  std::string sysfs = "/sys";
  std::vector<std::int64_t> processes;  // of this job on this node
  std::vector<std::uint32_t> cpus;      // that these may use, in order
  // Model of what the node draws because of a phase on such cores; empty, or none: unknown.
  std::function<std::optional<policy::NodePower>(policy::PhaseKind, Scope)> node_power = {};
  std::function<std::optional<double>()> node_joules = {};  // counted so far, of the whole node; empty: no counter
  std::function<double()> clock_s = {};  // seconds that only go on, from any beginning; empty: those of the machine
  LogSink log;
};

class Governor;

// Lives as long as the phase.
class [[nodiscard]] PhaseGuard {
 public:
  PhaseGuard() = default;  // of a phase that nobody governs
  PhaseGuard(PhaseGuard&& other) noexcept;
  PhaseGuard& operator=(PhaseGuard&&) = delete;
  ~PhaseGuard();  // everything runs as before again

  // The phase did all of its work: what it took is worth learning from.
  void succeeded() { has_succeeded_ = true; }
  Ratios ratios() const { return ratios_; }

 private:
  friend class Governor;
  PhaseGuard(Governor& governor, Ratios ratios) : governor_(&governor), ratios_(ratios) {}
  Governor* governor_ = nullptr;
  Ratios ratios_;
  bool has_succeeded_ = false;
};

// May be used by several threads; one phase at a time is governed, and others that begin meanwhile are left alone. Must
// outlive its phases.
class Governor {
 public:
  // With the policy `off` nothing is opened or started, and begin_phase() costs a comparison. Everything that can go
  // wrong later is tried here, as far as it can be: that the actuator finds something to set and the watchdog runs. A
  // governor that cannot work says why, and is off.
  static std::unique_ptr<Governor> create(const config::GovernorSettings& settings, Environment environment);
  ~Governor();

  PhaseGuard begin_phase(const PhaseStart& start);

  // Why nothing is slowed any more; empty: it governs, or nobody wants it to.
  std::string trouble() const;
  // Name of the actuator; "" if there is none.
  std::string actuator() const;
  // One for each name seen, in the order of their first phases.
  std::vector<PhaseReport> report() const;

 private:
  struct Parts;
  friend class PhaseGuard;

  explicit Governor(std::unique_ptr<Parts> parts);
  void end_phase(bool has_succeeded);

  mutable std::mutex mutex_;
  std::unique_ptr<Parts> parts_;  // none: off
};

}  // namespace diapause::governor
