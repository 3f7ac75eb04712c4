// The governor of a node (governor/governor.hpp), with what the engine knows of the node. Costs nothing while the
// policy is off.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "energy/sampler.hpp"
#include "engine/job/context.hpp"
#include "governor/governor.hpp"

namespace diapause::engine {

// Fills context.neighbours. Collective.
Status find_neighbours(Context& context);

// Whether this process governs by joules, and needs a sampler for it.
bool governs_by_joules(const Context& context);

// What was used while no meter told is in no number: of joules before and after a gap nothing can be concluded.
class Gaps {
 public:
  // Whether all is known since it was asked last.
  bool are_passed(const energy::Amount& since_start);

 private:
  double gap_s_ = 0;
};

// Of whoever acts for its node; where every rank acts for itself, the node's first rank governs for all.
class NodeGovernor {
 public:
  // `context` must outlive the object, and so must `sampler`, where joules decide; null: it cannot be had.
  NodeGovernor(Context& context, energy::Sampler* sampler);
  NodeGovernor(const NodeGovernor&) = delete;
  NodeGovernor& operator=(const NodeGovernor&) = delete;

  // From here on the steps of another checkpoint. One is due, as far as one knows, when as much time has passed as
  // between the last two.
  void begin_checkpoint();
  // Of this step, by its name in the ledger, on so many bytes; lives as long as the step.
  governor::PhaseGuard begin_phase(const char* step, policy::PhaseKind kind, std::uint64_t bytes);
  // Of the capture of so many bytes, for which the program always waits. From any thread.
  governor::PhaseGuard begin_capture(std::uint64_t bytes);

  std::string actuator() const { return governor_->actuator(); }  // "": the policy is off, or there is none

 private:
  std::optional<double> node_joules();

  const bool is_background_;
  energy::Sampler* const sampler_;
  std::unique_ptr<governor::Governor> governor_;
  std::optional<double> begun_s_;  // the checkpoint under way
  std::optional<double> interval_s_;
  Gaps gaps_;
};

// What the node draws because of a phase on so many of its processors, by the profile; none if the profile has no curve
// of power over clock. Where all wait for the phase that is all of the node; in the background it is only the share of
// the cores that the phase runs on, as the rest is drawn anyway.
std::optional<policy::NodePower> power_of(const energy::Profile& profile, policy::PhaseKind kind, governor::Scope scope,
                                          std::size_t cpus);

}  // namespace diapause::engine
