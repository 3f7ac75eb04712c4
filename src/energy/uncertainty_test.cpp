// Tests the promise behind every number with ±: the truth lies within it, and it is not much wider
// than it must be. Ten thousand times a made-up node with known joules is measured by a made-up
// meter, and again by meters that are poor in one way each.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <random>

#include "energy/collector.hpp"

namespace diapause::energy {
namespace {

constexpr int kCases = 10000;

class Chance {
 public:
  explicit Chance(std::uint32_t seed) : random_(seed) {}
  double between(double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random_);
  }
  double over_decades(double least, double most) {
    return std::exp(between(std::log(least), std::log(most)));
  }
  double normal() { return std::normal_distribution<double>()(random_); }
  int one_of(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }

 private:
  std::mt19937 random_;
};

// A power over time that changes in steps.
class Truth {
 public:
  // The power is constant, one step, a square wave, a ramp, noise, or bursts shorter than most
  // periods.
  static constexpr int kKinds = 6;

  Truth(int kind, double seconds, Chance& chance) : end_s_(seconds) {
    const double low_w = chance.between(20, 200);
    const double high_w = low_w + chance.between(20, 300);
    const double edge_s = chance.between(0, seconds);
    const double half_s = chance.over_decades(0.02, 5);
    const double apart_s = chance.over_decades(0.1, 2);
    while (time_s_ < seconds) {
      if (kind == 0) add(seconds, low_w);
      if (kind == 1)
        add(time_s_ < edge_s ? edge_s + 1e-9 : seconds, time_s_ < edge_s ? low_w : high_w);
      if (kind == 2) add(half_s, steps_ % 2 == 0 ? low_w : high_w);
      if (kind == 3) add(0.02, std::lerp(low_w, high_w, time_s_ / seconds));
      if (kind == 4) add(chance.between(0.005, 0.05), chance.between(low_w, high_w));
      if (kind == 5)
        add(steps_ % 2 == 0 ? chance.between(0, 2 * apart_s) : 0.01,
            steps_ % 2 == 0 ? low_w : high_w);
    }
  }

  double joules(double time_s) const {
    if (time_s <= 0) return 0;
    const auto after =
        std::lower_bound(ends_.begin(), ends_.end(), time_s,
                         [](const Step& step, double time) { return step.until_s < time; });
    const auto step = after == ends_.end() ? ends_.end() - 1 : after;
    return step->joules - step->watts * (step->until_s - time_s);
  }
  double highest_w() const { return highest_w_; }
  double seconds() const { return end_s_; }

 private:
  struct Step {
    double until_s, joules, watts;
  };
  void add(double seconds, double watts) {
    time_s_ += seconds;
    joules_ += seconds * watts;
    highest_w_ = std::max(highest_w_, watts);
    ends_.push_back({time_s_, joules_, watts});
    ++steps_;
  }

  double end_s_;
  double time_s_ = 0, joules_ = 0, highest_w_ = 0;
  int steps_ = 0;
  std::vector<Step> ends_;
};

enum class Fault {
  none,
  slow,     // It changes every second or every few seconds.
  coarse,   // It counts in steps of some joules, or shows whole watts.
  stops,    // It stands still for some seconds, and may lose what was used meanwhile.
  silence,  // Nobody reads it for some seconds.
};

struct Kind {
  int power = 0;  // kind of the curve
  Quantity quantity = Quantity::energy;
  bool tells_peak = false;
  Fault fault = Fault::none;
  auto operator<=>(const Kind&) const = default;
};

// A counter, or a sensor that shows the mean power since it changed last. It is off by a scale and
// by noise.
class MadeUpMeter final : public Meter {
 public:
  MadeUpMeter(const Truth& truth, const Kind& kind, double period_s, Chance& chance)
      : truth_(truth), chance_(chance) {
    const Quantity quantity = kind.quantity;
    const bool is_slow = kind.fault == Fault::slow;
    const bool is_coarse = kind.fault == Fault::coarse;
    Zone zone;
    zone.source = "made up";
    zone.domain = Domain::node;
    zone.quantity = quantity;
    zone.accuracy = {chance.over_decades(0.003, 0.1), "made up"};
    scale_ = 1 + 0.9 * *zone.accuracy.share * chance.between(-1, 1);
    if (quantity == Quantity::energy) {
      zone.unit = is_coarse ? chance.over_decades(0.5, 50) : chance.over_decades(1e-6, 1);
      zone.update_s = is_slow ? chance.over_decades(0.3, 5) : chance.over_decades(0.001, 0.3);
      zone.range = static_cast<std::uint64_t>(chance.over_decades(1000, 1e6) / zone.unit);
      zone.resolution_j = zone.unit;
    } else {
      noise_ = 0.2 * *zone.accuracy.share;
      zone.unit = is_coarse ? chance.over_decades(0.5, 10) : 1e-3;
      zone.update_s = is_slow ? chance.over_decades(2, 5) : chance.over_decades(period_s, 2);
      zone.resolution_j = zone.unit * (is_coarse ? std::max(period_s, zone.update_s) : 1);
    }
    zone.most_w = 5000;
    if (kind.fault == Fault::stops) {
      stops_s_ = chance.between(truth.seconds() / 4, truth.seconds());
      goes_on_s_ = stops_s_ + chance.over_decades(3 * period_s, 6);
      loses_ = chance.one_of(2) == 0;
    }
    if (kind.tells_peak) zone.peak_w = truth.highest_w() * chance.between(1, 1.5);
    began_j_ = chance.between(0, 1000);
    phase_s_ = chance.between(0, zone.update_s);
    zones_.push_back(zone);
  }

  std::string_view name() const override { return "made up"; }
  const std::vector<Zone>& zones() const override { return zones_; }
  void read(double now_s, std::vector<Reading>& out) override {
    const Zone& zone = zones_[0];
    double changed_s = std::floor((now_s + phase_s_) / zone.update_s) * zone.update_s - phase_s_;
    double lost_j = 0;
    if (changed_s > stops_s_ && changed_s < goes_on_s_) changed_s = stops_s_;
    if (changed_s > stops_s_ && loses_)
      lost_j = truth_.joules(goes_on_s_) - truth_.joules(stops_s_);
    if (zone.quantity == Quantity::energy) {
      const double joules = began_j_ + scale_ * (truth_.joules(changed_s) - lost_j);
      out.push_back({0, now_s, static_cast<std::uint64_t>(joules / zone.unit) % zone.range});
      return;
    }
    if (changed_s != changed_s_) {
      changed_s_ = changed_s;
      const double watts =
          (truth_.joules(changed_s) - truth_.joules(changed_s - zone.update_s)) / zone.update_s;
      shown_w_ = watts * scale_ * (1 + noise_ * chance_.normal());
    }
    const double shown = std::round(std::max(0.0, shown_w_) / zone.unit);
    out.push_back({0, now_s, static_cast<std::uint64_t>(shown)});
  }

 private:
  const Truth& truth_;
  Chance& chance_;
  std::vector<Zone> zones_;
  double scale_ = 1, noise_ = 0, began_j_ = 0, phase_s_ = 0, changed_s_ = -1, shown_w_ = 0;
  double stops_s_ = 1e9, goes_on_s_ = 1e9;
  bool loses_ = false;
};

// Returns how far the joules of one phase are off the truth, as a share of how far they may be off.
// The result is empty if nothing is told.
std::optional<double> off_share(const Kind& kind, Chance& chance) {
  const double longest_s = kind.fault == Fault::slow ? 120 : 30;
  const Truth truth(kind.power, chance.over_decades(kind.fault == Fault::slow ? 40 : 5, longest_s),
                    chance);
  const double end_s = truth.seconds();
  const double period_s = chance.over_decades(0.05, 0.5);
  std::vector<std::unique_ptr<Meter>> meters;
  meters.push_back(std::make_unique<MadeUpMeter>(truth, kind, period_s, chance));
  // A slow sensor has nothing to tell at first.
  const double margin_s = std::min(std::max(2.5, 2 * meters[0]->zones()[0].update_s), end_s / 4);
  Collector collector(std::move(meters), period_s);
  const double silent_s = kind.fault == Fault::silence ? chance.between(0, end_s) : end_s;
  const double heard_s = silent_s + chance.over_decades(0.5, 20);
  for (double now_s = 0.01; now_s < end_s; now_s += period_s * chance.between(0.9, 1.1)) {
    if (now_s < silent_s || now_s > heard_s) collector.collect(now_s);
  }
  collector.decide(Collector::Models::always);
  if (collector.zones().empty()) return std::nullopt;  // it has not moved yet
  const double length_s = chance.over_decades(0.005, end_s - 2 * margin_s);
  const double from_s = chance.between(margin_s, end_s - margin_s - length_s);
  const Amount told = collector.total_between(from_s, from_s + length_s);
  if (told.has_gap()) return std::nullopt;
  const double truth_j = truth.joules(from_s + length_s) - truth.joules(from_s);
  return std::abs(told.joules - truth_j) / told.off.together_j();
}

struct Outcome {
  double covered = 0;  // a share of all cases
  // By 99 of 100 cases of a kind, as a share of the joules that are told.
  double needed_in_median = 0;
};

Outcome outcome_of(Fault fault, std::uint32_t seed) {
  Chance chance(seed);
  std::map<Kind, std::vector<double>> groups;
  int covered = 0;
  for (int told = 0; told < kCases;) {
    const Kind kind{
        chance.one_of(Truth::kKinds),
        chance.one_of(3) == 0 && fault != Fault::stops ? Quantity::power : Quantity::energy,
        chance.one_of(3) > 0, fault};
    const auto share = off_share(kind, chance);
    if (!share) continue;
    ++told;
    covered += *share <= 1;
    groups[kind].push_back(*share);
  }
  std::vector<double> needed;
  for (auto& [group, shares] : groups) {
    std::ranges::sort(shares);
    needed.push_back(
        shares[static_cast<std::size_t>(0.99 * static_cast<double>(shares.size() - 1))]);
  }
  std::ranges::sort(needed);
  return {static_cast<double>(covered) / kCases, needed[needed.size() / 2]};
}

TEST(Uncertainty, CoversTheTruthAndIsNotMuchWiderThanItMustBe) {
  const Outcome outcome = outcome_of(Fault::none, 17);
  EXPECT_GE(outcome.covered, 0.99);
  EXPECT_GE(outcome.needed_in_median, 0.5);
  RecordProperty("covered", static_cast<int>(kCases * outcome.covered));
  RecordProperty("needed_percent", static_cast<int>(100 * outcome.needed_in_median));
}

// A sensor of power that stands still looks like one that shows a constant power; nobody can tell
// them apart.
TEST(Uncertainty, CoversTheTruthUnderPoorMeters) {
  for (const Fault fault : {Fault::slow, Fault::coarse, Fault::stops, Fault::silence})
    EXPECT_GE(outcome_of(fault, 18).covered, 0.99) << static_cast<int>(fault);
}

}  // namespace
}  // namespace diapause::energy
