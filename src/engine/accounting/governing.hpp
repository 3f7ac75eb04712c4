// The governor of a node (governor/governor.hpp), combined with the engine's knowledge of the node.
// It costs nothing while the policy is off.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "energy/sampler.hpp"
#include "engine/job/context.hpp"
#include "governor/governor.hpp"

namespace diapause::engine {

// Returns whether this process governs by joules, and needs a sampler for that.
bool governs_by_joules(const Context& context);

// The governor in the process that acts for its node. If every rank acts for itself, the node's
// first rank governs for all.
class NodeGovernor {
 public:
  // `context` must outlive the object, and so must `sampler` if joules decide. A null `sampler`
  // means that there is none.
  NodeGovernor(const Context& context, energy::Sampler* sampler);
  NodeGovernor(const NodeGovernor&) = delete;
  NodeGovernor& operator=(const NodeGovernor&) = delete;

  // Begins the steps of another checkpoint. The next one is expected after the time between the
  // last two.
  void begin_checkpoint();
  // Begins a phase for a step, by the step's name in the ledger, on so many bytes. The guard lives
  // as long as the step.
  governor::PhaseGuard begin_phase(const char* step, policy::PhaseKind kind, std::uint64_t bytes);
  // Begins the capture of so many bytes, for which the program always waits. May be called from any
  // thread.
  governor::PhaseGuard begin_capture(std::uint64_t bytes);

  // "" if the policy is off or there is no actuator.
  std::string actuator() const { return governor_->actuator(); }

 private:
  std::optional<double> node_joules(double from_s, double to_s);

  const bool is_background_;
  energy::Sampler* const sampler_;
  std::unique_ptr<governor::Governor> governor_;
  std::optional<double> begun_s_;  // time at which the present checkpoint began
  std::optional<double> interval_s_;
};

// Returns the power of the node that is due to a phase on one of its `cpus` processors, according
// to the profile; nullopt if the profile has no curve of power over clock. If everybody waits for
// the phase, that is the power of the whole node. In the background it is what one core adds to an
// idle package: the part a f^b of the curve that the core's clock changes, and of the part c only
// what an idle package does not draw.
std::optional<policy::NodePower> power_of(const energy::Profile& profile, policy::PhaseKind kind,
                                          governor::Scope scope, std::size_t cpus);

}  // namespace diapause::engine
