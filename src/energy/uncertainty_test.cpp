// The promise behind every number with ±: the truth lies within it, and it is not much wider than
// it must be. Ten thousand times a made-up node with known joules is measured by a made-up meter.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <tuple>

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

// Power over time, in steps.
class Truth {
 public:
  // Constant, one step, square wave, ramp, noise, bursts shorter than most periods.
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

// A counter, or a sensor that shows the mean power since it changed last; off by a scale, and by
// noise.
class MadeUpMeter final : public Meter {
 public:
  MadeUpMeter(const Truth& truth, Quantity quantity, bool tells_peak, double period_s,
              Chance& chance)
      : truth_(truth), chance_(chance) {
    Zone zone;
    zone.source = "made up";
    zone.domain = Domain::node;
    zone.quantity = quantity;
    zone.accuracy = {chance.over_decades(0.003, 0.1), "made up"};
    scale_ = 1 + 0.9 * *zone.accuracy.share * chance.between(-1, 1);
    if (quantity == Quantity::energy) {
      zone.unit = chance.over_decades(1e-6, 1);
      zone.update_s = chance.over_decades(0.001, 0.3);
      zone.range = static_cast<std::uint64_t>(chance.over_decades(1000, 1e6) / zone.unit);
      zone.resolution_j = zone.unit;
    } else {
      noise_ = 0.2 * *zone.accuracy.share;
      zone.unit = 1e-3;
      zone.update_s = chance.over_decades(period_s, 2);
      zone.resolution_j = zone.unit;
    }
    zone.most_w = 5000;
    if (tells_peak) zone.peak_w = truth.highest_w() * chance.between(1, 1.5);
    began_j_ = chance.between(0, 1000);
    phase_s_ = chance.between(0, zone.update_s);
    zones_.push_back(zone);
  }

  std::string_view name() const override { return "made up"; }
  const std::vector<Zone>& zones() const override { return zones_; }
  void read(double now_s, std::vector<Reading>& out) override {
    const Zone& zone = zones_[0];
    const double changed_s =
        std::floor((now_s + phase_s_) / zone.update_s) * zone.update_s - phase_s_;
    if (zone.quantity == Quantity::energy) {
      const double joules = began_j_ + scale_ * truth_.joules(changed_s);
      out.push_back({0, now_s, static_cast<std::uint64_t>(joules / zone.unit) % zone.range});
      return;
    }
    if (changed_s != changed_s_) {
      changed_s_ = changed_s;
      const double watts =
          (truth_.joules(changed_s) - truth_.joules(changed_s - zone.update_s)) / zone.update_s;
      shown_w_ = watts * scale_ * (1 + noise_ * chance_.normal());
    }
    out.push_back({0, now_s, static_cast<std::uint64_t>(std::max(0.0, shown_w_) / zone.unit)});
  }

 private:
  const Truth& truth_;
  Chance& chance_;
  std::vector<Zone> zones_;
  double scale_ = 1, noise_ = 0, began_j_ = 0, phase_s_ = 0, changed_s_ = -1, shown_w_ = 0;
};

// Of one phase: how far what is told is off the truth, as a share of what it may be off; none:
// nothing is told.
std::optional<double> off_share(int kind, Quantity quantity, bool tells_peak, Chance& chance) {
  const Truth truth(kind, chance.over_decades(5, 30), chance);
  const double period_s = chance.over_decades(0.05, 0.5);
  std::vector<std::unique_ptr<Meter>> meters;
  meters.push_back(std::make_unique<MadeUpMeter>(truth, quantity, tells_peak, period_s, chance));
  Collector collector(std::move(meters), period_s);
  const double end_s = truth.seconds();
  for (double now_s = 0.01; now_s < end_s; now_s += period_s * chance.between(0.9, 1.1))
    collector.collect(now_s);
  collector.decide(Collector::Models::always);
  if (collector.zones().empty()) return std::nullopt;  // it has not moved yet
  const double margin_s =
      std::min(2.5, end_s / 4);  // in which a slow sensor has nothing to tell yet
  const double length_s = chance.over_decades(0.005, end_s - 2 * margin_s);
  const double from_s = chance.between(margin_s, end_s - margin_s - length_s);
  const Amount told = collector.total_between(from_s, from_s + length_s);
  if (told.has_gap()) return std::nullopt;
  const double truth_j = truth.joules(from_s + length_s) - truth.joules(from_s);
  return std::abs(told.joules - truth_j) / told.off.together_j();
}

TEST(Uncertainty, CoversTheTruthAndIsNotMuchWiderThanItMustBe) {
  Chance chance(17);
  std::map<std::tuple<int, Quantity, bool>, std::vector<double>> groups;
  int covered = 0;
  for (int told = 0; told < kCases;) {
    const int kind = chance.one_of(Truth::kKinds);
    const Quantity quantity = chance.one_of(3) == 0 ? Quantity::power : Quantity::energy;
    const bool tells_peak = chance.one_of(3) > 0;
    const auto share = off_share(kind, quantity, tells_peak, chance);
    if (!share) continue;
    ++told;
    covered += *share <= 1;
    groups[{kind, quantity, tells_peak}].push_back(*share);
  }
  EXPECT_GE(covered, 0.99 * kCases);
  // What 99 of 100 cases of a kind need, as a share of what is told.
  std::vector<double> needed;
  for (auto& [group, shares] : groups) {
    std::ranges::sort(shares);
    needed.push_back(
        shares[static_cast<std::size_t>(0.99 * static_cast<double>(shares.size() - 1))]);
  }
  std::ranges::sort(needed);
  EXPECT_GE(needed[needed.size() / 2], 0.5);
  RecordProperty("covered", covered);
  RecordProperty("needed_percent", static_cast<int>(100 * needed[needed.size() / 2]));
}

}  // namespace
}  // namespace diapause::energy
