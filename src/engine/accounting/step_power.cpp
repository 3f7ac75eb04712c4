#include "engine/accounting/step_power.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "energy/activity.hpp"
#include "energy/profile.hpp"

namespace diapause::engine {
namespace {

// Greatest uncertainty of a stretch's joules for it to count.
constexpr double kMostUncertain = 0.2;
// Least fraction of a step for the power of compression to be derived from it.
constexpr double kLeastEncoding = 0.1;

double mean(const std::optional<double>& before, double now) {
  return before ? (*before + now) / 2 : now;
}

}  // namespace

bool weighs_joules(const Context& context) {
  const config::CodecSettings& codec = context.settings.codec;
  return codec.method == config::CodecMethod::automatic && codec.goal == config::CodecGoal::energy;
}

bool StepPower::is_measured() const {
  const energy::Total& total = sampler_->total();
  return !total.zones.empty() && total.kind == energy::Kind::measured;
}

std::optional<double> StepPower::watts_between(double from_s, double to_s) const {
  const energy::Amount used = sampler_->between(from_s, to_s).total;
  if (used.covered_s <= 0 || used.gap_s > used.covered_s) return std::nullopt;
  if (!(used.off.sampling_j <= kMostUncertain * used.joules)) return std::nullopt;
  return used.joules / used.covered_s;
}

// Returns the power of a step. The power of the program alone is that drawn since the step before.
std::optional<double> StepPower::watts_of(const GlobalStep& step) const {
  const std::optional<double> all = watts_between(step.from_s, step.to_s);
  if (!context_.topology.by_node || !all) return all;
  if (!last_end_s_) return std::nullopt;
  const std::optional<double> alone = watts_between(*last_end_s_, step.from_s);
  if (!alone || *all <= *alone) return std::nullopt;
  return *all - *alone;
}

void StepPower::learn(const GlobalStep& step) {
  if (sampler_ == nullptr || step.seconds() <= 0) return;
  if (step.how == Stored::as_it_is)
    busy_share_ = std::clamp(step.processor.had_s / step.seconds(), 0.0, 1.0);
  if (is_measured()) {
    const std::optional<double> watts = watts_of(step);
    const double encoding = step.encode_s / step.seconds();
    if (watts && step.how == Stored::as_it_is) write_w_ = mean(write_w_, *watts);
    if (watts && write_w_ && step.how == Stored::compressed && encoding >= kLeastEncoding) {
      const double compressing = (*watts - (1 - encoding) * *write_w_) / encoding;
      if (compressing > 0) compress_w_ = mean(compress_w_, compressing);
    }
  }
  last_end_s_ = step.to_s;
}

// Returns the modelled power if every participating process of this node keeps so many processors
// busy.
double StepPower::modelled_w(double busy_share) const {
  const auto& node_of_rank = context_.topology.node_of_rank;
  const auto processes =
      context_.topology.by_node ? 1 : std::ranges::count(node_of_rank, context_.topology.node);
  const unsigned cpus = energy::count_cpus(sys::real_kernel(), context_.settings.energy.root);
  energy::Activity busy;
  busy.utilisation = std::min(1.0, busy_share * static_cast<double>(processes) / cpus);
  double watts = 0;
  for (const energy::DomainModel& domain : sampler_->profile().domains) {
    watts += energy::model_watts(sampler_->profile(), domain, busy);
    if (context_.topology.by_node) watts -= energy::model_watts(sampler_->profile(), domain, {});
  }
  return watts;
}

Draw StepPower::draw() const {
  if (!weighs_joules(context_)) return {};
  if (sampler_ == nullptr) return {{}, {}, "energy is not measured"};
  if (sampler_->total().zones.empty())
    return {{}, {}, "there is no meter, not even a model ([energy] meters)"};
  const double threads = context_.settings.codec.threads;
  const std::string modelled =
      fmt::format("modelled by the profile '{}'", sampler_->profile().name);
  if (!write_w_) return {modelled_w(threads), modelled_w(busy_share_), modelled};
  const std::string measured = "measured: " + sampler_->total().name;
  if (compress_w_) return {*compress_w_, *write_w_, measured};
  const double more_w = modelled_w(threads) - modelled_w(busy_share_);
  return {*write_w_ + more_w, *write_w_,
          fmt::format("writing {}, and how much more compressing draws {}", measured, modelled)};
}

}  // namespace diapause::engine
