#include "policy/throttle.hpp"

#include <algorithm>
#include <cmath>

namespace diapause::policy {
namespace {

constexpr std::size_t kSamples = 5;
constexpr std::uint32_t kDoubts = 3;  // consecutive phases whose time was not the expected one
constexpr std::uint32_t kCompareEvery = 16;
constexpr std::uint32_t kRestForTrial = 64;  // a number of phases
// A deviation from the expected time by this fraction means other conditions.
constexpr double kChanged = 0.25;
constexpr double kFull = 0.999;  // ratios from here on count as the base clock

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
  for (int step = kSteps - 1; step >= static_cast<int>(std::ceil(lowest * kSteps)) && step > 0;
       --step) {
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
      return "nothing tells what the node draws; it takes a meter of the whole node (`diapause "
             "power` says what is "
             "there "
             "and what would help), or a profile of this machine (`diapause power calibrate`, then "
             "energy.profile)";
    case Why::cannot_be_told:
      return "whether it saves energy of the node cannot be told from noise";
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
  return median_of(slowed_, [&](const Sample& sample) {
    return cpu_bound_share(sample.seconds / full, sample.ratio);
  });
}

std::optional<double> Throttle::expected_s(std::uint64_t bytes) const {
  if (full_.empty()) return std::nullopt;
  return median_seconds(full_) * static_cast<double>(std::max<std::uint64_t>(bytes, 1));
}

Choice Throttle::choose(const PhaseAhead& phase, const std::optional<NodePower>& power) {
  if (settings_.policy == config::ThrottlePolicy::off) return {1, Why::off};
  power_ = power;
  const auto expected = expected_s(phase.bytes);
  if (!expected) return {1, Why::duration_unknown};
  if (*expected < kShortestPhase_s) return {1, Why::too_short};
  if (doubts_ > 0) return {1, Why::comparison};
  if (settings_.policy == config::ThrottlePolicy::measured)
    return choose_measured(phase, *expected, power);
  const double ratio = fixed_ratio(phase.kind);
  if (*expected * slowdown(phi().value_or(1), ratio) > phase.due_s) return {1, Why::no_time};
  return {ratio, Why::rule};
}

// Returns the lowest ratio allowed by the bound on slowdown and by the time until the phase is due:
// phi / r + 1 - phi <= most.
double Throttle::lowest_ratio(const PhaseAhead& phase, double expected_s) const {
  const double most = std::min(1 + settings_.max_slowdown_percent / 100, phase.due_s / expected_s);
  if (most <= 1) return 1;
  const double share = phi().value_or(1);
  return std::max(kLowestRatio, share / (share + most - 1));
}

Choice Throttle::choose_measured(const PhaseAhead& phase, double expected_s,
                                 const std::optional<NodePower>& power) {
  const double fixed = fixed_ratio(phase.kind);
  const auto trial = [&]() -> Choice {
    // It is not known yet how much a trial slows the phase. In the worst case all of it scales with
    // the clock.
    if (expected_s * slowdown(1, fixed) > phase.due_s) return {1, Why::no_time};
    return {fixed, Why::trial};
  };
  if (!power && !has_counter_) return {1, Why::power_unknown};
  if (rest_ > 0) return {1, Why::cannot_be_told};
  using Answer = PairedTrials::Answer;
  const Answer answer = trials_.answer();
  if (answer == Answer::does_not) return {1, Why::does_not_save_any};
  if (answer == Answer::cannot_be_told) return {1, Why::cannot_be_told};
  if (answer == Answer::open) return is_trial_next() ? trial() : Choice{1, Why::comparison};
  if (since_trial_ >= kCompareEvery) return {1, Why::comparison};
  const double lowest = lowest_ratio(phase, expected_s);
  const double ratio =
      power && !has_counter_ ? best_ratio(*power, *phi(), lowest) : slowed_.back().ratio;
  if (ratio >= kFull) return {1, Why::does_not_save_any};
  if (ratio < lowest) return {1, Why::no_time};
  return {ratio, Why::saves};
}

// The order is slowed, full, full, slowed and so on, so that drift favours neither.
bool Throttle::is_trial_next() const {
  if (unpaired_slowed_) return false;
  if (trials_.pairs() >= PairedTrials::kFirstLook) return since_trial_ >= kCompareEvery;
  if (unpaired_full_) return true;
  return trials_.pairs() % 2 == 0;
}

void Throttle::forget() {
  full_.clear();
  slowed_.clear();
  trials_.forget();
  unpaired_full_.reset();
  unpaired_slowed_.reset();
  since_trial_ = trials_done_ = doubts_ = 0;
}

// A single phase may take long by chance; several in a row mean that conditions have changed. Where
// times scatter that much, they do so again and again, and trials that led to nothing are paid for
// by a rest.
void Throttle::doubt(bool is_off) {
  doubts_ = is_off ? doubts_ + 1 : 0;
  if (doubts_ != kDoubts) return;
  const bool led_to_savings = trials_.answer() == PairedTrials::Answer::saves;
  const std::uint32_t rest = led_to_savings ? 0 : std::max(rest_, kRestForTrial * trials_done_);
  forget();
  rest_ = rest;
}

// Adds the joules of the phase, measured or derived from the time, to a pair. While phases are
// slowed, only those next to one at the base clock form pairs; all others would be compared with
// measurements from long ago.
void Throttle::pair_up(const PhaseSeen& seen, bool slowed) {
  has_counter_ = has_counter_ || seen.node_joules.has_value();
  std::optional<double> joules = seen.node_joules;
  if (!joules && !has_counter_ && power_)
    joules = seen.seconds * (power_->cpu.at(seen.ratio) + power_->rest);
  const bool slows = trials_.answer() == PairedTrials::Answer::saves;
  const bool is_other_way = slowed != slows;  // this is a trial, or a comparison
  since_trial_ = is_other_way ? 0 : since_trial_ + 1;
  if (!joules) return;
  if (slowed && !slows) trial_ratio_ = seen.ratio;
  // A ratio that a model has chosen belongs to no pair of the trials.
  if (slowed && seen.ratio != trial_ratio_) return;
  (slowed ? unpaired_slowed_ : unpaired_full_) = per_byte(*joules, seen.bytes);
  if (slows ? slowed || !unpaired_slowed_ : !unpaired_slowed_ || !unpaired_full_) return;
  trials_.add(*unpaired_full_, *unpaired_slowed_);
  ++trials_done_;
  unpaired_full_.reset();
  unpaired_slowed_.reset();
}

void Throttle::learn(const PhaseSeen& seen) {
  if (!(seen.seconds > 0)) return;
  if (rest_ > 0) --rest_;
  const Sample sample{seen.ratio, per_byte(seen.seconds, seen.bytes)};
  const bool slowed = seen.ratio < kFull;
  if (slowed && full_.empty()) return;  // there is nothing to compare it with
  if (!full_.empty()) {
    const double full = median_seconds(full_);
    const auto share = phi();
    // For a phase that was never seen slowed, the longest possible time is assumed.
    const double longest = full * slowdown(share.value_or(1), sample.ratio);
    doubt(share || !slowed ? is_off(sample.seconds, longest)
                           : sample.seconds > (1 + kChanged) * longest);
  }
  const auto answer = trials_.answer();
  const bool is_answered =
      answer == PairedTrials::Answer::does_not || answer == PairedTrials::Answer::cannot_be_told;
  if (is_answered && ++since_trial_ >= kRestForTrial * trials_done_) forget();
  if (slowed && full_.empty()) return;
  keep_last(slowed ? slowed_ : full_, sample);
  if (!is_answered) pair_up(seen, slowed);
}

}  // namespace diapause::policy
