// What the step of level 4 draws while it compresses and while it writes: what codec.goal = "energy" weighs.
// docs/compression.md, "By joules".
#pragma once

#include <optional>
#include <string>

#include "energy/sampler.hpp"
#include "engine/encoding/encoding_plan.hpp"
#include "engine/job/context.hpp"

namespace diapause::engine {

// Whether this process decides by joules what to compress, and needs a sampler for it.
bool weighs_joules(const Context& context);

// Where the program waits for the step, that is all that the machine draws; in the background, what it draws more than
// the program alone. Measured where the machine has counters, else by the profile: processors idle and busy.
class StepPower {
 public:
  // `context` and `sampler` must outlive the object; null: it cannot be had.
  StepPower(const Context& context, energy::Sampler* sampler)
      : context_(context), sampler_(weighs_joules(context) ? sampler : nullptr) {}

  // The last step of this process, each once, in their order.
  void learn(const GlobalStep& step);
  // As far as it is known now.
  Draw draw() const;

 private:
  bool is_measured() const;
  std::optional<double> watts_between(double from_s, double to_s) const;
  std::optional<double> watts_of(const GlobalStep& step) const;
  double modelled_w(double busy_share) const;

  const Context& context_;
  energy::Sampler* const sampler_;
  std::optional<double> last_end_s_;
  double busy_share_ = 0;  // of the time of a step without compression, that this process had a processor
  std::optional<double> write_w_, compress_w_;  // measured
};

}  // namespace diapause::engine
