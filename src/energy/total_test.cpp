#include "energy/total.hpp"

#include <gmock/gmock.h>

namespace diapause::energy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Zone zone(const std::string& meter, Domain domain, const std::string& part = "",
          Kind kind = Kind::measured) {
  Zone result;
  result.source = meter + " somewhere";
  result.domain = domain;
  result.part = part;
  result.kind = kind;
  return result;
}

TEST(Total, OfNothingIsNothing) { EXPECT_THAT(choose_total({}).zones, IsEmpty()); }

TEST(Total, CoreAndUncoreAreInsideThePackage) {
  const std::vector<Zone> zones = {
      zone("powercap", Domain::package, "0"), zone("powercap", Domain::core, "0"),
      zone("powercap", Domain::uncore, "0"),  zone("powercap", Domain::dram, "0"),
      zone("powercap", Domain::package, "1"), zone("powercap", Domain::dram, "1")};
  const Total total = choose_total(zones);
  EXPECT_EQ(total.name, "package+dram");
  EXPECT_THAT(total.zones, ElementsAre(0, 4, 3, 5));
}

TEST(Total, PsysHasPackageAndMemoryInside) {
  const std::vector<Zone> zones = {zone("powercap", Domain::package, "0"),
                                   zone("powercap", Domain::dram, "0"),
                                   zone("powercap", Domain::psys), zone("nvml", Domain::gpu, "0")};
  const Total total = choose_total(zones);
  EXPECT_EQ(total.name, "psys+gpu");
  EXPECT_THAT(total.zones, ElementsAre(2, 3));
}

TEST(Total, NodeHasEverythingInside) {
  const std::vector<Zone> zones = {zone("powercap", Domain::psys), zone("nvml", Domain::gpu, "0"),
                                   zone("ipmi", Domain::node)};
  EXPECT_EQ(choose_total(zones).name, "node");
}

TEST(Total, SuperchipHasItsGpuInside) {
  const std::vector<Zone> zones = {
      zone("hwmon", Domain::module, "0"), zone("hwmon", Domain::socket, "0"),
      zone("hwmon", Domain::package, "0"), zone("nvml", Domain::gpu, "0")};
  EXPECT_EQ(choose_total(zones).name, "module");
}

TEST(Total, OfAGpuAloneIsThatOfTheGpu) {
  const std::vector<Zone> zones = {zone("nvml", Domain::gpu, "0"), zone("nvml", Domain::gpu, "1")};
  const Total total = choose_total(zones);
  EXPECT_EQ(total.name, "gpu");
  EXPECT_THAT(total.zones, ElementsAre(0, 1));
}

TEST(Total, OneCounterByTwoWaysCountsOnce) {
  const std::vector<Zone> zones = {zone("powercap", Domain::package, "0/0"),
                                   zone("perf", Domain::package, "0")};
  EXPECT_THAT(choose_total(zones).zones, ElementsAre(0));
}

TEST(Total, MeasuredProcessorIsPreferredToAModelledNode) {
  const std::vector<Zone> zones = {zone("model", Domain::node, "", Kind::modelled),
                                   zone("powercap", Domain::package, "0")};
  const Total total = choose_total(zones);
  EXPECT_EQ(total.name, "package");
  EXPECT_EQ(total.kind, Kind::measured);
}

TEST(Total, WithAModelledPartIsModelled) {
  const std::vector<Zone> zones = {zone("nvml", Domain::gpu, "0"),
                                   zone("model", Domain::node, "", Kind::modelled)};
  const Total total = choose_total(zones);
  EXPECT_EQ(total.name, "node+gpu");
  EXPECT_EQ(total.kind, Kind::modelled);
}

TEST(Total, AProfileWithoutTheRestOfTheNodeIsNotCalledNode) {
  const std::vector<Zone> zones = {zone("model", Domain::package, "", Kind::modelled),
                                   zone("model", Domain::dram, "", Kind::modelled),
                                   zone("nvml", Domain::gpu, "0")};
  const Total total = choose_total(zones);
  EXPECT_EQ(total.name, "package+dram+gpu");
  EXPECT_EQ(total.kind, Kind::modelled);
}

Zone changing_every(double update_s, Zone zone) {
  zone.update_s = update_s;
  return zone;
}

TEST(FastParts, ASlowMeterOfTheNodeIsToldApartByCountersOfProcessors) {
  const std::vector<Zone> zones = {zone("powercap", Domain::package, "0"),
                                   zone("powercap", Domain::dram, "0"),
                                   changing_every(2, zone("hwmon", Domain::gpu, "0")),
                                   changing_every(2, zone("ipmi", Domain::node))};
  const Total parts = choose_fast_parts(zones, choose_total(zones));
  EXPECT_EQ(parts.name, "package+dram");
  EXPECT_THAT(parts.zones, ElementsAre(0, 1));
}

TEST(FastParts, AFastMeterOfTheNodeNeedsNone) {
  const std::vector<Zone> zones = {changing_every(0.1, zone("pm_counters", Domain::node)),
                                   zone("powercap", Domain::package, "0")};
  EXPECT_THAT(choose_fast_parts(zones, choose_total(zones)).zones, IsEmpty());
}

TEST(FastParts, AModelTellsNothingApart) {
  const std::vector<Zone> zones = {changing_every(2, zone("ipmi", Domain::node)),
                                   zone("model", Domain::package, "", Kind::modelled)};
  EXPECT_THAT(choose_fast_parts(zones, choose_total(zones)).zones, IsEmpty());
}

TEST(Total, GpusOfTwoMakersBothCount) {
  const std::vector<Zone> zones = {zone("model", Domain::node, "", Kind::modelled),
                                   zone("nvml", Domain::gpu, "0"),
                                   zone("hwmon", Domain::gpu, "amdgpu 0")};
  EXPECT_THAT(choose_total(zones).zones, ElementsAre(0, 1, 2));
}

TEST(IsCovered, WhatLiesInADomainOfTheTotalIs) {
  EXPECT_TRUE(is_covered("node", Domain::other));
  EXPECT_TRUE(is_covered("psys+gpu", Domain::dram));
  EXPECT_TRUE(is_covered("psys+gpu", Domain::other));
  EXPECT_TRUE(is_covered("package+dram", Domain::core));
  EXPECT_FALSE(is_covered("package+dram", Domain::other));
  EXPECT_FALSE(is_covered("psys", Domain::disk));
  EXPECT_FALSE(is_covered("", Domain::node));
}

}  // namespace
}  // namespace diapause::energy
