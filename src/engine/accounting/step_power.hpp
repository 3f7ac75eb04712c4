// The power of the step of level 4 while it compresses and while it writes, which codec.goal =
// "energy" weighs. docs/compression.md, "By joules".
#pragma once

#include <optional>
#include <string>

#include "energy/sampler.hpp"
#include "engine/encoding/encoding_plan.hpp"
#include "engine/job/context.hpp"

namespace diapause::engine {

// Returns whether this process decides by joules what to compress, and needs a sampler for that.
bool weighs_joules(const Context& context);

// Learns the power of the step. If the program waits for the step, that is the power of the whole
// machine; in the background it is the power in addition to the program's. It is measured where the
// machine has counters, and otherwise computed from the profile's powers of idle and busy
// processors.
class StepPower {
 public:
  // `context` and `sampler` must outlive the object; a null `sampler` means that there is none.
  StepPower(const Context& context, energy::Sampler* sampler)
      : context_(context), sampler_(weighs_joules(context) ? sampler : nullptr) {}

  // Learns from the last step of this process. It is called once for each step, in their order.
  void learn(const GlobalStep& step);
  // Returns the powers as far as they are known now.
  Draw draw() const;

 private:
  bool is_measured() const;
  std::optional<double> watts_between(double from_s, double to_s) const;
  std::optional<double> watts_of(const GlobalStep& step) const;
  double modelled_w(double busy_share) const;

  const Context& context_;
  energy::Sampler* const sampler_;
  std::optional<double> last_end_s_;
  // Fraction of the time of a step without compression in which this process had a processor.
  double busy_share_ = 0;
  std::optional<double> write_w_, compress_w_;  // the measured powers
};

}  // namespace diapause::engine
