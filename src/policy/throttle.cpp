#include "policy/throttle.hpp"

#include <algorithm>
#include <cmath>

namespace diapause::policy {
namespace {

constexpr std::size_t kSamples = 3;
constexpr std::uint32_t kCompareEvery = 16;
constexpr double kChanged = 0.25;        // off the expected time by so much: conditions are others
constexpr double kWorthChanging = 0.01;  // of the energy; less is not worth a change of ways
constexpr double kFull = 0.999;          // ratios from here on are the base clock

double per_byte(double value, std::uint64_t bytes) {
  return value / static_cast<double>(std::max<std::uint64_t>(bytes, 1));
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

template <class Samples, class Value>
double median_of(const Samples& samples, Value value) {
  std::vector<double> values;
  for (const auto& sample : samples) values.push_back(value(sample));
  return median(std::move(values));
}

template <class Samples>
double median_seconds(const Samples& samples) {
  return median_of(samples, [](const auto& sample) { return sample.seconds; });
}

// none: not all of them were measured.
template <class Samples>
std::optional<double> median_joules(const Samples& samples) {
  if (samples.empty() || !std::ranges::all_of(samples, [](const auto& sample) { return sample.joules.has_value(); })) {
    return std::nullopt;
  }
  return median_of(samples, [](const auto& sample) { return *sample.joules; });
}

template <class Samples, class Sample>
void keep_last(Samples& samples, const Sample& sample) {
  if (samples.size() == kSamples) samples.erase(samples.begin());
  samples.push_back(sample);
}

bool is_off(double seconds, double expected) { return std::abs(seconds / expected - 1) > kChanged; }

}  // namespace

double PowerFit::at(double ratio) const { return a * std::pow(ratio * base_ghz, b) + c; }

double slowdown(double phi, double ratio) { return phi / ratio + 1 - phi; }

double cpu_bound_share(double observed_slowdown, double ratio) {
  return std::clamp((observed_slowdown - 1) / (1 / ratio - 1), 0.0, 1.0);
}

double energy_ratio(const NodePower& power, double phi, double ratio) {
  return slowdown(phi, ratio) * (power.cpu.at(ratio) + power.rest) / (power.cpu.at(1) + power.rest);
}

double best_ratio(const NodePower& power, double phi, double lowest) {
  constexpr int kSteps = 1000;
  double best = 1;
  double least = energy_ratio(power, phi, 1);
  for (int step = kSteps - 1; step >= static_cast<int>(std::ceil(lowest * kSteps)) && step > 0; --step) {
    const double ratio = static_cast<double>(step) / kSteps;
    const double energy = energy_ratio(power, phi, ratio);
    if (energy >= least) continue;
    best = ratio;
    least = energy;
  }
  return best;
}

std::string_view why_text(Why why) {
  switch (why) {
    case Why::off:
      return "the governor is off";
    case Why::duration_unknown:
      return "how long it takes is not known yet";
    case Why::too_short:
      return "it is shorter than 50 ms";
    case Why::no_time:
      return "slowed, it would take longer than it may";
    case Why::rule:
      return "the fixed ratio";
    case Why::trial:
      return "a trial at the fixed ratio";
    case Why::comparison:
      return "a comparison at the base clock";
    case Why::power_unknown:
      return "nothing tells what the node draws";
    case Why::saves:
      return "saves energy of the node";
    case Why::shared_cores:
      return "its cores are the program's, too";
    case Why::does_not_save_any:
      return "would not save energy of the node";
  }
  return "";
}

double Throttle::fixed_ratio(PhaseKind kind) const {
  return kind == PhaseKind::compress ? settings_.ratio_compress : settings_.ratio_write;
}

std::optional<double> Throttle::phi() const {
  if (full_.empty() || slowed_.empty()) return std::nullopt;
  const double full = median_seconds(full_);
  return median_of(slowed_, [&](const Sample& sample) { return cpu_bound_share(sample.seconds / full, sample.ratio); });
}

std::optional<double> Throttle::expected_s(std::uint64_t bytes) const {
  if (full_.empty()) return std::nullopt;
  return median_seconds(full_) * static_cast<double>(std::max<std::uint64_t>(bytes, 1));
}

Choice Throttle::choose(const PhaseAhead& phase, const std::optional<NodePower>& power) {
  if (settings_.policy == config::ThrottlePolicy::off) return {1, Why::off};
  const auto expected = expected_s(phase.bytes);
  if (!expected) return {1, Why::duration_unknown};
  if (*expected < kShortestPhase_s) return {1, Why::too_short};
  if (settings_.policy == config::ThrottlePolicy::measured) return choose_measured(phase, *expected, power);
  const double ratio = fixed_ratio(phase.kind);
  if (*expected * slowdown(phi().value_or(1), ratio) > phase.due_s) return {1, Why::no_time};
  return {ratio, Why::rule};
}

// The bound on slowdown and the time until the phase is due, both as ratios: phi / r + 1 - phi <= most.
double Throttle::lowest_ratio(const PhaseAhead& phase, double expected_s) const {
  const double most = std::min(1 + settings_.max_slowdown_percent / 100, phase.due_s / expected_s);
  if (most <= 1) return 1;
  const double share = phi().value_or(1);
  return std::max(kLowestRatio, share / (share + most - 1));
}

Choice Throttle::choose_measured(const PhaseAhead& phase, double expected_s, const std::optional<NodePower>& power) {
  const double fixed = fixed_ratio(phase.kind);
  const auto trial = [&]() -> Choice {
    // Nobody knows yet how much a trial slows: at worst as if all of it were bound by the clock.
    if (expected_s * slowdown(1, fixed) > phase.due_s) return {1, Why::no_time};
    return {fixed, Why::trial};
  };
  const auto full_joules = median_joules(full_);
  const bool can_compare = power || full_joules;
  if (!can_compare) return {1, Why::power_unknown};
  if (slowed_.empty()) return trial();
  if (same_way_ >= kCompareEvery) return last_was_slowed_ ? Choice{1, Why::comparison} : trial();

  const double lowest = lowest_ratio(phase, expected_s);
  const auto slowed_joules = median_joules(slowed_);
  double ratio = 1;
  double energy = 1;
  if (full_joules && slowed_joules) {
    ratio = slowed_.back().ratio;
    energy = *slowed_joules / *full_joules;
  } else if (power) {
    ratio = best_ratio(*power, *phi(), lowest);
    energy = energy_ratio(*power, *phi(), ratio);
  }
  slows_ = energy < (slows_ ? 1 : 1 - kWorthChanging);
  if (!slows_) return {1, Why::does_not_save_any};
  if (ratio < lowest) return {1, Why::no_time};
  return {ratio, Why::saves};
}

void Throttle::forget() {
  full_.clear();
  slowed_.clear();
  same_way_ = 0;
  slows_ = false;
}

void Throttle::learn(const PhaseSeen& seen) {
  if (!(seen.seconds > 0)) return;
  Sample sample{seen.ratio, per_byte(seen.seconds, seen.bytes), std::nullopt};
  if (seen.node_joules) sample.joules = per_byte(*seen.node_joules, seen.bytes);
  const bool slowed = seen.ratio < kFull;
  same_way_ = slowed == last_was_slowed_ ? same_way_ + 1 : 1;
  last_was_slowed_ = slowed;
  if (!slowed) {
    if (!full_.empty() && is_off(sample.seconds, median_seconds(full_))) forget();
    keep_last(full_, sample);
    return;
  }
  if (full_.empty()) return;  // nothing to compare it with
  const double full = median_seconds(full_);
  const auto share = phi();
  const bool changed = share ? is_off(sample.seconds, full * slowdown(*share, sample.ratio))
                             : sample.seconds > (1 + kChanged) * full * slowdown(1, sample.ratio);
  if (changed) {
    forget();
  } else {
    keep_last(slowed_, sample);
  }
}

}  // namespace diapause::policy
