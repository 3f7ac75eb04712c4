#include "energy/collector.hpp"

#include <gmock/gmock.h>

#include <memory>

namespace diapause::energy {
namespace {

// A counter that rises by so many watts.
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

Collector settled_with_psys_of(double psys_w) {
  std::vector<std::unique_ptr<Meter>> meters;
  meters.push_back(std::make_unique<Steady>("a", Domain::psys, psys_w));
  meters.push_back(std::make_unique<Steady>("a", Domain::package, 150));
  meters.push_back(std::make_unique<Steady>("a", Domain::dram, 20));
  Collector collector(std::move(meters), 0.1);
  for (int i = 1; i <= 10; ++i) collector.collect(0.1 * i);
  collector.settle(Collector::Models::always);
  return collector;
}

TEST(Collector, APlatformThatDrawsLessThanItsProcessorsIsNoTotal) {
  const Collector collector = settled_with_psys_of(8);
  EXPECT_EQ(collector.total().name, "package+dram");
  ASSERT_EQ(collector.dropped().size(), 1U);
  EXPECT_THAT(collector.dropped()[0].why, testing::HasSubstr("package and dram, which are in it"));
}

TEST(Collector, APlatformThatDrawsMoreThanItsProcessorsIsTheTotal) {
  EXPECT_EQ(settled_with_psys_of(230).total().name, "psys");
}

// Two meters of the firmware may be two supplies, or the same one twice.
TEST(Collector, OfSeveralMetersOfTheNodeOnlyTheFirstCounts) {
  const Zone first{.source = "hwmon power_meter power1_average", .domain = Domain::node, .part = ""};
  Zone second = first;
  second.part = "#2";
  EXPECT_EQ(choose_total(std::vector{first, second}).zones, std::vector<std::size_t>{0});
}

}  // namespace
}  // namespace diapause::energy
