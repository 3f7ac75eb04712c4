#include "energy/collector.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <memory>

namespace diapause::energy {
namespace {

// The counter rises by the given number of watts.
class Steady final : public Meter {
 public:
  Steady(std::string_view name, Domain domain, double watts) : name_(name), watts_(watts) {
    Zone zone;
    zone.source = std::string(name) + " zone";
    zone.domain = domain;
    zones_.push_back(zone);
  }
  std::string_view name() const override { return name_; }
  const std::vector<Zone>& zones() const override { return zones_; }
  void read(double now_s, std::vector<Reading>& out) override {
    out.push_back({0, now_s, static_cast<std::uint64_t>(1e6 * (5 + watts_ * now_s))});
  }

 private:
  std::string_view name_;
  double watts_;
  std::vector<Zone> zones_;
};

Collector decided_with_psys_of(double psys_w) {
  std::vector<std::unique_ptr<Meter>> meters;
  meters.push_back(std::make_unique<Steady>("a", Domain::psys, psys_w));
  meters.push_back(std::make_unique<Steady>("a", Domain::package, 150));
  meters.push_back(std::make_unique<Steady>("a", Domain::dram, 20));
  Collector collector(std::move(meters), 0.1);
  for (int i = 1; i <= 10; ++i) collector.collect(0.1 * i);
  collector.decide(Collector::Models::always);
  return collector;
}

TEST(Collector, APlatformThatDrawsLessThanItsProcessorsIsNoTotal) {
  const Collector collector = decided_with_psys_of(8);
  EXPECT_EQ(collector.total().name, "package+dram");
  ASSERT_EQ(collector.dropped().size(), 1U);
  EXPECT_THAT(collector.dropped()[0].why, testing::HasSubstr("package and dram, which are in it"));
}

TEST(Collector, APlatformThatDrawsMoreThanItsProcessorsIsTheTotal) {
  EXPECT_EQ(decided_with_psys_of(230).total().name, "psys");
}

// The package is a part of the node, and uses 100 W more from 170 s to 170.5 s. The node is read
// every two seconds.
class Burst final : public Meter {
 public:
  explicit Burst(Domain domain) : is_node_(domain == Domain::node) {
    Zone zone;
    zone.source = is_node_ ? "slow node" : "fast package";
    zone.domain = domain;
    zone.quantity = is_node_ ? Quantity::power : Quantity::energy;
    zone.update_s = is_node_ ? 2 : 0.001;
    zones_.push_back(zone);
  }
  std::string_view name() const override { return is_node_ ? "slow" : "fast"; }
  const std::vector<Zone>& zones() const override { return zones_; }
  void read(double now_s, std::vector<Reading>& out) override {
    const auto joules = [&](double time_s) {
      // The package goes up and down every 40 s, which shows how much it adds to the node.
      const double within_s = std::fmod(time_s, 80);
      const double slow_j = 20 * (time_s + std::min(within_s, 80 - within_s));
      const double burst_j = std::clamp(time_s - 170, 0.0, 0.5) * 100;
      return is_node_ ? 100 * time_s + 1.2 * (slow_j + burst_j) : 40 * time_s + slow_j + burst_j;
    };
    if (!is_node_) {
      out.push_back({0, now_s, static_cast<std::uint64_t>(1e6 * (5 + joules(now_s)))});
    } else if (now_s >= told_s_ + 2) {
      out.push_back({0, now_s,
                     static_cast<std::uint64_t>(1e6 * (joules(now_s) - joules(told_s_)) /
                                                (now_s - told_s_))});
      told_s_ = now_s;
    }
  }

 private:
  bool is_node_;
  double told_s_ = 0;
  std::vector<Zone> zones_;
};

TEST(Collector, ASlowMeterOfTheNodeAndAFastOneOfItsProcessorTogetherTellABurst) {
  std::vector<std::unique_ptr<Meter>> meters;
  meters.push_back(std::make_unique<Burst>(Domain::node));
  meters.push_back(std::make_unique<Burst>(Domain::package));
  Collector collector(std::move(meters), 0.1);
  for (int i = 0; i <= 50; ++i) collector.collect(0.1 * i + 0.1);
  collector.decide(Collector::Models::always);
  for (int i = 51; i < 3000; ++i) collector.collect(0.1 * i + 0.1);
  EXPECT_EQ(collector.total().name, "node");
  EXPECT_EQ(collector.fast_parts().name, "package");
  const double burst_j =
      collector.total_between(170, 170.5).joules - collector.total_between(165, 165.5).joules;
  EXPECT_NEAR(burst_j, 60, 6);
  const double whole_j = collector.between(0, 10, 290).joules;
  EXPECT_NEAR(collector.total_between(10, 290).joules, whole_j, 0.01 * whole_j);
}

// Two meters of the firmware may be two supplies, or the same one twice.
TEST(Collector, OfSeveralMetersOfTheNodeOnlyTheFirstCounts) {
  const Zone first{
      .source = "hwmon power_meter power1_average", .domain = Domain::node, .part = ""};
  Zone second = first;
  second.part = "#2";
  EXPECT_EQ(choose_total(std::vector{first, second}).zones, std::vector<std::size_t>{0});
}

}  // namespace
}  // namespace diapause::energy
