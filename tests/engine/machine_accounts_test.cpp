// Tests the accounts of several machines as one.
#include "engine/accounting/machine_accounts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

namespace diapause::engine {
namespace {

using nlohmann::json;

json phase(const json& joules, double seconds = 1) {
  return {{"version", 1},        {"level", 4}, {"phase", "global"},
          {"beside", "program"}, {"nth", 0},   {"start_unix_s", 1000},
          {"seconds", seconds},  {"bytes", 8}, {"joules", joules}};
}

json off(double sampling_j) {
  return {{"sampling_j", sampling_j}, {"sensor_j", 10}, {"attribution_j", 0}};
}

json machine(const json& program, const json& whole, const std::vector<json>& phases) {
  return {
      {"time_unix_s", 1010},
      {"seconds", 10},
      {"gap_s", 0},
      {"total", "node"},
      {"sources", json::array({{{"domain", "node"}, {"source", "hwmon"}, {"kind", "measured"}}})},
      {"program", {{"joules", program}, {"uncertainty", off(3)}}},
      {"whole", {{"joules", whole}, {"uncertainty", off(3)}, {"ends_j", {3, 4}}}},
      {"phases", phases}};
}
json total(double joules) { return {{"total", joules}}; }
json metered() { return machine(total(700), total(1000), {phase(total(300))}); }

// Returns the account of a machine whose meters are off, or dead.
json unmetered() {
  json one = machine(nullptr, nullptr, {phase(nullptr)});
  one["total"] = "";
  one["sources"] = json::array();
  for (json* part : {&one["program"], &one["whole"], &one["phases"][0]}) part->erase("joules");
  return one;
}

json sum_of(const std::vector<json>& machines) { return add_up(machines); }

// Returns the sum of all parts that have a total.
double parts_of(const json& sum) {
  double joules = sum["program"]["joules"]["total"];
  for (const json& one : sum["phases"]) {
    if (!one["joules"]["total"].is_null()) joules += one["joules"]["total"].get<double>();
  }
  return joules;
}

TEST(MachineAccounts, JoulesAreAddedUpAndTheLongestCounts) {
  json longer = metered();
  longer["phases"][0]["seconds"] = 4;
  longer["gap_s"] = 2;
  const json sum = sum_of({metered(), longer});
  EXPECT_EQ(sum["machines"], 2);
  EXPECT_FALSE(sum.contains("unmetered"));
  EXPECT_EQ(sum["whole"]["joules"]["total"], 2000);
  EXPECT_EQ(sum["program"]["joules"]["total"], 1400);
  ASSERT_EQ(sum["phases"].size(), 1u);
  EXPECT_EQ(sum["phases"][0]["joules"]["total"], 600);
  EXPECT_EQ(sum["phases"][0]["seconds"], 4);
  EXPECT_FALSE(sum["phases"][0].contains("nth"));
  EXPECT_EQ(sum["gap_s"], 2);
}

json with_processors(double job_s, double others_s) {
  json one = metered();
  one["processors"] = {{"job_s", job_s},
                       {"others_s", others_s},
                       {"others_most_s", others_s},
                       {"job_j", 10},
                       {"job_attribution_j", 3}};
  return one;
}

TEST(MachineAccounts, ProcessorTimesAreAddedUpAndTheBusiestOthersKnown) {
  const json sum = sum_of({with_processors(4, 1), with_processors(2, 3), with_processors(1, 0)});
  EXPECT_EQ(sum["processors"]["job_s"], 7);
  EXPECT_EQ(sum["processors"]["others_s"], 4);
  EXPECT_EQ(sum["processors"]["others_most_s"], 3);
  EXPECT_EQ(sum["processors"]["job_j"], 30);
  EXPECT_EQ(sum["processors"]["job_attribution_j"], 9);
}

TEST(MachineAccounts, ProcessorTimesAreUnknownWhereAMachineDoesNotTellThem) {
  EXPECT_FALSE(sum_of({with_processors(4, 1), metered()}).contains("processors"));
  EXPECT_FALSE(sum_of({metered(), with_processors(4, 1)}).contains("processors"));
}

TEST(MachineAccounts, AllBoundsAreAdded) {
  json other = metered();
  other["whole"]["uncertainty"] = off(4);
  const json whole = sum_of({metered(), other})["whole"];
  EXPECT_EQ(whole["uncertainty"]["sampling_j"], 7);
  EXPECT_EQ(whole["uncertainty"]["sensor_j"], 20);
  EXPECT_EQ(whole["uncertainty_j"], 27);
  EXPECT_EQ(whole["ends_j"][0], 6);
}

TEST(MachineAccounts, BoundsOfDomainsAreAddedWhereAllMachinesTellThem) {
  json one = metered(), other = metered();
  for (json* machine : {&one, &other}) {
    (*machine)["whole"]["joules"]["dram"] = 10;
    (*machine)["whole"]["uncertainty_of"] = {{"dram", {1, 2, 3}}};
    (*machine)["whole"]["ends_of"] = {{"dram", {4, 5}}};
  }
  EXPECT_EQ(sum_of({one, other})["whole"]["uncertainty_of"]["dram"], json({2, 4, 6}));
  EXPECT_EQ(sum_of({one, other})["whole"]["ends_of"]["dram"], json({8, 10}));
  EXPECT_EQ(sum_of({one, metered()})["whole"]["uncertainty_of"]["dram"], json({1, 2, 3}));
  other["whole"]["uncertainty_of"]["dram"][1] = nullptr;
  EXPECT_TRUE(sum_of({one, other})["whole"]["uncertainty_of"]["dram"][1].is_null());
  other["whole"].erase("uncertainty_of");
  EXPECT_FALSE(sum_of({one, other})["whole"].contains("uncertainty_of"));
  EXPECT_FALSE(sum_of({other, one})["whole"].contains("uncertainty_of"));
}

TEST(MachineAccounts, ADomainOfWhichAPartIsUnknownIsNotTold) {
  json whole = metered();
  whole["sources"].push_back({{"domain", "dram"}, {"source", "rapl"}, {"kind", "measured"}});
  json none = whole, part = whole;
  for (json* machine : {&whole, &part}) (*machine)["whole"]["joules"]["dram"] = 10;
  whole["whole"]["uncertainty_of"] = {{"dram", {1, 2, 3}}};
  part["whole"]["uncertainty_of"] = json::object();
  EXPECT_EQ(sum_of({whole, whole})["whole"]["joules"]["dram"], 20);
  for (const json& other : {none, part}) {
    const json sum = sum_of({whole, other});
    EXPECT_EQ(sum["whole"]["joules"], total(2000));
    EXPECT_FALSE(sum["whole"].value("uncertainty_of", json::object()).contains("dram"));
    EXPECT_EQ(sum_of({other, whole})["whole"]["joules"], total(2000));
    EXPECT_EQ(sum_of({other})["whole"]["joules"], total(1000));
  }
  EXPECT_EQ(sum_of({whole, metered()})["whole"]["joules"]["dram"], 10);  // it has none
}

TEST(MachineAccounts, TheMachinesAreToldFromOthers) {
  json first = metered(), second = metered();
  first["machine"] = "a";
  second["machine"] = "b";
  const json hosts = sum_of({first, second})["hosts"];
  EXPECT_EQ(hosts, sum_of({second, first})["hosts"]);
  EXPECT_NE(hosts, sum_of({first})["hosts"]);
  EXPECT_FALSE(sum_of({first}).contains("machine"));
}

TEST(MachineAccounts, OfASumWithAnEstimateThereIsNoBound) {
  json guessed = metered();
  guessed["whole"]["uncertainty"]["sensor_j"] = nullptr;
  for (const auto& machines : {std::vector{metered(), guessed}, std::vector{guessed, metered()}}) {
    EXPECT_TRUE(sum_of(machines)["whole"]["uncertainty_j"].is_null());
    EXPECT_TRUE(sum_of(machines)["whole"]["uncertainty"]["sensor_j"].is_null());
  }
}

TEST(MachineAccounts, WhatOneMachineDoesNotKnowOfAPhaseIsTheProgramsOnTheOthers) {
  const json one_that_does_not =
      machine(total(500), total(500), {phase({{"dram", 7}, {"total", nullptr}})});
  for (const auto& machines : {std::vector{metered(), one_that_does_not, metered()},
                               std::vector{one_that_does_not, metered(), metered()},
                               std::vector{metered(), metered(), one_that_does_not}}) {
    const json sum = sum_of(machines);
    EXPECT_TRUE(sum["phases"][0]["joules"]["total"].is_null());
    EXPECT_EQ(sum["phases"][0]["joules"]["dram"], 7);
    EXPECT_FALSE(sum["phases"][0].contains("uncertainty_j"));
    EXPECT_EQ(sum["program"]["joules"]["total"], 700 + 700 + 500 + 300 + 300);
    EXPECT_EQ(parts_of(sum), 2500);
    EXPECT_EQ(sum["whole"]["joules"]["total"], 2500);
  }
}

TEST(MachineAccounts, AMachineWithoutMetersTakesNothingFromTheOthers) {
  for (const auto& machines :
       {std::vector{metered(), unmetered()}, std::vector{unmetered(), metered()}}) {
    const json sum = sum_of(machines);
    EXPECT_EQ(sum["machines"], 2);
    EXPECT_EQ(sum["unmetered"], 1);
    EXPECT_EQ(sum["total"], "node");
    EXPECT_EQ(sum["whole"]["joules"]["total"], 1000);
    EXPECT_EQ(parts_of(sum), 1000);
    EXPECT_EQ(sum["sources"].size(), 1u);
  }
}

TEST(MachineAccounts, WithoutAnyMeterThereAreNoJoules) {
  const json sum = sum_of({unmetered(), unmetered()});
  EXPECT_EQ(sum["unmetered"], 2);
  EXPECT_EQ(sum["total"], "");
  EXPECT_FALSE(sum["whole"].contains("joules"));
  EXPECT_FALSE(sum["phases"][0].contains("joules"));
}

TEST(MachineAccounts, TotalsOfDifferentDomainsAreMixed) {
  json other = metered();
  other["total"] = "package+dram";
  other["sources"][0]["domain"] = "package";
  const json sum = sum_of({metered(), other, metered()});
  EXPECT_EQ(sum["total"], "mixed");
  EXPECT_EQ(sum["sources"].size(), 2u);
}

TEST(MachineAccounts, WhatTellsATotalApartIsNamedIfItIsTheSameOnAllThatHaveOne) {
  const auto told_apart_by = [](const char* parts) {
    json one = metered();
    if (*parts != 0) one["told_apart_by"] = parts;
    return one;
  };
  EXPECT_EQ(sum_of({told_apart_by("package"), told_apart_by("package")})["told_apart_by"],
            "package");
  EXPECT_EQ(sum_of({unmetered(), told_apart_by("package")})["told_apart_by"], "package");
  EXPECT_FALSE(sum_of({told_apart_by("package"), told_apart_by("psys")}).contains("told_apart_by"));
  EXPECT_FALSE(sum_of({told_apart_by("package"), told_apart_by("")}).contains("told_apart_by"));
}

TEST(MachineAccounts, BoardsThatAreLeftOutAreNamedOnce) {
  json one = metered();
  one["left_out"] = {"2 of AMD"};
  json other = metered();
  other["left_out"] = {"2 of AMD", "1 of NVIDIA"};
  EXPECT_EQ(sum_of({metered(), one, other})["left_out"], json({"2 of AMD", "1 of NVIDIA"}));
}

TEST(MachineAccounts, PhasesOfOneNameAreToldApart) {
  json twice = metered();
  twice["phases"].push_back(phase(total(1), 2));
  twice["phases"][1]["nth"] = 1;
  const json sum = sum_of({twice, metered()});
  ASSERT_EQ(sum["phases"].size(), 2u);
  EXPECT_EQ(sum["phases"][0]["joules"]["total"], 600);
  EXPECT_EQ(sum["phases"][1]["joules"]["total"], 1);
}

TEST(MachineAccounts, ThatOfTheSlowestMachineIsToldOfAClock) {
  json slowed = metered();
  slowed["phases"][0]["slowed"] = {{"actuator", "cpufreq"}, {"asked", 0.8}, {"obtained", 0.85}};
  json slower = slowed;
  slower["phases"][0]["slowed"]["obtained"] = 0.8;
  EXPECT_EQ(sum_of({metered(), slower, slowed})["phases"][0]["slowed"]["obtained"], 0.8);
}

}  // namespace
}  // namespace diapause::engine
