#include "energy/profile.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

namespace diapause::energy {
namespace {

using testing::HasSubstr;

constexpr const char* kSmall = R"(
name = "small"
machine = "a small machine"
[clock]
base_ghz = { value = 2.0, source = "data sheet" }
[domain.package]
idle_w = { value = 20, source = "measured" }
busy_w = { value = 80, source = "measured" }
[domain.disk]
idle_w = { value = 3, source = "measured" }
j_per_gb = { value = 4, source = "measured" }
[frequency]
a = { value = 0.1, source = "fit" }
b = { value = 2, source = "fit" }
c = { value = 0.6, source = "fit" }
)";

Profile small() { return *parse_profile(kSmall, "small.toml", {}); }
std::string refused(const std::string& text) {
  return parse_profile(text, "bad.toml", {}).error().message;
}

TEST(Profile, PowerIsIdleAndWhatIsDone) {
  const Profile profile = small();
  EXPECT_DOUBLE_EQ(model_watts(profile, profile.domains[1], {}), 20);
  EXPECT_DOUBLE_EQ(model_watts(profile, profile.domains[1], {.utilisation = 0.5}), 60);
  EXPECT_DOUBLE_EQ(model_watts(profile, profile.domains[0], {.utilisation = 1, .disk_gb_s = 2}),
                   11);
}

TEST(Profile, BusyPowerFollowsTheCurve) {
  const Profile profile = small();
  EXPECT_NEAR(model_watts(profile, profile.domains[1], {.utilisation = 1, .ghz = 2}), 100, 1e-9);
  EXPECT_NEAR(model_watts(profile, profile.domains[1], {.utilisation = 1, .ghz = 1}), 70, 1e-9);
  EXPECT_NEAR(model_watts(profile, profile.domains[1], {.utilisation = 0, .ghz = 1}), 20, 1e-9);
}

TEST(Profile, EveryOneThatIsBuiltInSaysHowFarItIsOffAndWhoSaysSo) {
  for (const auto name : built_in_profiles()) {
    const Profile profile = *parse_profile(built_in_profile(name), std::string(name), {.cpus = 8});
    ASSERT_TRUE(profile.error.has_value()) << name;
    EXPECT_GT(profile.error->value, 0) << name;
    EXPECT_FALSE(profile.error->source.empty()) << name;
  }
}

// The numbers come from table 1 and from the node powers of tables 5, 9, 13 and 17: cores, TDP of
// all sockets, and power of a busy node.
TEST(Profile, ThePublishedMachinesAreAsFarFromTheGenericOneAsItSays) {
  struct Published {
    unsigned cores;
    double tdp_w, node_w;
  };
  constexpr Published kMachines[] = {
      {64, 215, 298.37}, {16, 55, 50.77}, {32, 270, 338.39}, {4, 65, 75.14}};
  for (const bool knows_tdp : {false, true}) {
    double furthest = 0, stated = 0;
    for (const Published& machine : kMachines) {
      const MachineFacts facts{machine.cores, knows_tdp ? machine.tdp_w : 0};
      const Profile profile = *parse_profile(built_in_profile("generic"), "generic", facts);
      double watts = 0;
      for (const DomainModel& domain : profile.domains)
        watts += model_watts(profile, domain, {.utilisation = 1});
      furthest = std::max(furthest, std::abs(machine.node_w - watts) / watts);
      stated = profile.error->value;
    }
    EXPECT_LE(furthest, stated);
    EXPECT_GE(furthest, 0.9 * stated);
  }
}

TEST(Profile, NumberWithoutASourceIsRefused) {
  EXPECT_THAT(refused("name = 'x'\nmachine = 'y'\n[domain.dram]\nidle_w = 5"),
              HasSubstr("bad.toml:4: domain.dram.idle_w"));
  EXPECT_THAT(refused("name = 'x'\nmachine = 'y'\n[domain.dram]\nidle_w = { value = 5 }"),
              HasSubstr("'source' is missing"));
}

TEST(Profile, MistakesAreNamedWithTheirLine) {
  EXPECT_THAT(refused("name = 'x'\nmachine = 'y'\n[domain.memory]"),
              HasSubstr("bad.toml:3: domain.memory: domains are"));
  EXPECT_THAT(refused("name = 'x'\nmachine = 'y'\n[clok]\n"),
              HasSubstr("bad.toml:3: the file has no key 'clok'"));
  EXPECT_THAT(refused("name = "), HasSubstr("bad.toml:1: not valid TOML"));
}

TEST(Profile, SharesOfTheTdpFollowWhatTheUserSaysOfIt) {
  const auto profile = parse_profile(built_in_profile("generic"), "generic", {4, 200});
  ASSERT_TRUE(profile.has_value());
  for (const DomainModel& domain : profile->domains) {
    if (domain.domain != Domain::package) continue;
    EXPECT_DOUBLE_EQ(domain.idle_w.value, 60);
    EXPECT_DOUBLE_EQ(domain.busy_w.value, 140);
    EXPECT_THAT(domain.idle_w.source, HasSubstr("0.3 of the TDP of 200 W"));
  }
}

TEST(Profile, AllThatAreBuiltInCanBeRead) {
  EXPECT_THAT(built_in_profiles(), testing::Contains("generic"));
  for (const std::string_view name : built_in_profiles()) {
    const auto profile = parse_profile(built_in_profile(name), std::string(name), {8, 0});
    ASSERT_TRUE(profile.has_value()) << profile.error().message;
    EXPECT_EQ(profile->name, name);
    for (const DomainModel& domain : profile->domains) {
      EXPECT_GT(model_watts(*profile, domain, {.utilisation = 1}), 0)
          << name << " " << domain_name(domain.domain);
    }
  }
}

Profile built_in(const std::string& name) {
  return *parse_profile(built_in_profile(name), name, {});
}

double node_watts(const Profile& profile, const Activity& activity) {
  double watts = 0;
  for (const DomainModel& domain : profile.domains) watts += model_watts(profile, domain, activity);
  return watts;
}

// The numbers come from tables 6, 10, 14 and 18 of the study of multilevel checkpointing: HDC
// without checkpoints.
TEST(Profile, OfAPublishedMachineGivesThePublishedPowerOfABusyNode) {
  EXPECT_NEAR(node_watts(built_in("theta-xc40"), {.utilisation = 1}), 298.37, 0.01);
  EXPECT_NEAR(node_watts(built_in("mira-bgq"), {.utilisation = 1}), 50.77, 0.01);
  EXPECT_NEAR(node_watts(built_in("shepard-haswell"), {.utilisation = 1}), 338.39, 0.01);
  EXPECT_NEAR(node_watts(built_in("cooper-kaveri"), {.utilisation = 1}), 75.14, 0.01);
}

// These are the values of the printed fits at the clocks of the published rule: 0.875 of the
// highest for compression, 0.85 for writing.
TEST(Profile, OfAPublishedMachineHasThePublishedCurves) {
  const auto saved = [](const Profile& profile, const char* phase, double share) {
    const PowerCurve& curve = profile.phases.at(phase);
    return 1 - curve.at(share * profile.base_clock_ghz->value) /
                   curve.at(profile.base_clock_ghz->value);
  };
  EXPECT_NEAR(saved(built_in("m510-broadwell"), "compress", 0.875), 0.130, 0.001);
  EXPECT_NEAR(saved(built_in("c220g5-skylake"), "compress", 0.875), 0.203, 0.001);
  EXPECT_NEAR(saved(built_in("m510-broadwell"), "write", 0.85), 0.118, 0.001);
  EXPECT_NEAR(saved(built_in("c220g5-skylake"), "write", 0.85), 0.124, 0.001);
}

}  // namespace
}  // namespace diapause::energy
