#include "cli/energy_summary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace diapause::cli {
namespace {

// Returns a line of ten seconds up to `unix_s` in which the program used 800 J, and a phase 200 J.
std::string energy_line(int incarnation, int unix_s, const std::string& phase) {
  return R"({"event":"energy","incarnation":)" + std::to_string(incarnation) +
         R"(,"time_unix_s":)" + std::to_string(unix_s) +
         R"(,"seconds":10,"gap_s":0,"total":"node","sources":[{"domain":"node","source":"hwmon","kind":"measured"}],)"
         R"("program":{"joules":{"total":800}},"whole":{"joules":{"total":1000}},"phases":[)" +
         phase + "]}";
}

std::string capture(int version, double start_unix_s,
                    const std::string& joules = R"({"total":200})") {
  return R"({"phase":"capture","version":)" + std::to_string(version) +
         R"(,"level":0,"bytes":64,"seconds":2,)" + R"("start_unix_s":)" +
         std::to_string(start_unix_s) + R"(,"joules":)" + joules + "}";
}

std::string restart(int incarnation, int version) {
  return R"({"event":"restart","time_unix_s":500,"incarnation":)" + std::to_string(incarnation) +
         R"(,"version":)" + std::to_string(version) + "}";
}

EnergySummary read(const std::vector<std::string>& lines) {
  EnergyReader reader;
  for (const std::string& line : lines) reader.add_line(line);
  return reader.take();
}

TEST(EnergySummary, TheProgramAndThePhasesAddUpToTheWhole) {
  const EnergySummary sum =
      read({energy_line(1, 100, capture(7, 91)), energy_line(1, 110, capture(8, 101))});
  EXPECT_EQ(sum.seconds, 20);
  EXPECT_EQ(sum.whole.complete(), 2000);
  EXPECT_EQ(sum.watts(), 100);
  EXPECT_EQ(*sum.program.complete() + *sum.all_phases().joules.complete(), 2000);
  EXPECT_EQ(sum.phases.size(), 2u);
  EXPECT_EQ(sum.kind(), "measured");
}

// The machine had four processors, and others used as much of them as `others_s` says.
std::string with_processors(std::string line, const std::string& job_s, const std::string& others_s,
                            const std::string& more) {
  return line.replace(line.find(R"("gap_s")"), 0,
                      R"("processors":{"job_s":)" + job_s + R"(,"others_s":)" + others_s +
                          R"(,"others_most_s":)" + others_s + more + "},");
}

TEST(EnergySummary, TellsThePartOfAJobThatSharesItsNode) {
  const std::string joules = R"(,"job_j":750,"job_attribution_j":100)";
  const EnergySummary sum =
      read({with_processors(energy_line(1, 100, capture(7, 91)), "30", "10", joules),
            with_processors(energy_line(1, 110, capture(8, 101)), "30", "10", joules)});
  EXPECT_EQ(sum.is_shared(), true);
  ASSERT_TRUE(sum.job_part().has_value());
  EXPECT_EQ(sum.job_part()->complete(), 1500);
  EXPECT_EQ(sum.job_part()->attribution, 200);  // the errors are the same in both lines
}

TEST(EnergySummary, IsNotSharedWithTheServicesOfAMachine) {
  EXPECT_EQ(read({with_processors(energy_line(1, 100, capture(7, 91)), "30", "4", "")}).is_shared(),
            false);
  EXPECT_EQ(read({with_processors(energy_line(1, 100, capture(7, 91)), "30", "6", "")}).is_shared(),
            true);
}

TEST(EnergySummary, DoesNotKnowOfSharingWhereALineDoesNotTell) {
  const std::string joules = R"(,"job_j":750,"job_attribution_j":100)";
  const EnergySummary sum =
      read({with_processors(energy_line(1, 100, capture(7, 91)), "30", "10", joules),
            energy_line(1, 110, capture(8, 101))});
  EXPECT_EQ(sum.is_shared(), std::nullopt);
  EXPECT_FALSE(sum.job_part().has_value());
  EXPECT_EQ(read({with_processors(energy_line(1, 100, ""), "30", "\"10\"", joules)}).is_shared(),
            std::nullopt);
}

TEST(EnergySummary, NamesWhatTellsTheTotalApartAndTheBoardsThatAreLeftOut) {
  std::string line = energy_line(1, 100, "");
  line.replace(line.find(R"("gap_s")"), 0,
               R"("told_apart_by":"package+dram","left_out":["gpu boards of AMD: 2 seen"],)");
  const EnergySummary sum = read({line, energy_line(1, 110, "")});
  EXPECT_THAT(sum.told_apart_by, testing::ElementsAre("package+dram"));
  EXPECT_THAT(sum.left_out, testing::ElementsAre("gpu boards of AMD: 2 seen"));
}

// A slow meter of the node tells a phase badly, and the total better.
TEST(EnergySummary, OfADomainThatIsAllOfTheTotalTheTotalCounts) {
  std::string line = energy_line(1, 100, capture(7, 91));
  for (std::size_t at = line.find(R"({"total":)"); at != std::string::npos;
       at = line.find(R"({"total":)", at + 12)) {
    line.insert(at + 1, R"("node":1,)");
  }
  EnergyReader reader("node");
  reader.add_line(line);
  const EnergySummary sum = reader.take();
  EXPECT_EQ(sum.total, "node");
  EXPECT_EQ(sum.whole.complete(), 1000);
  EXPECT_EQ(sum.program.complete(), 800);
  EXPECT_EQ(sum.all_phases().joules.complete(), 200);
}

// Returns a line whose total has two domains. Both tell how far they may be off.
std::string line_of_domains(int number, const std::string& more_of_phase) {
  return R"({"event":"energy","incarnation":1,"number":)" + std::to_string(number) +
         R"(,"time_unix_s":)" + std::to_string(100 + 10 * number) +
         R"(,"seconds":10,"gap_s":0,"total":"package+dram","sources":[],)"
         R"("program":{"joules":{"package":700,"dram":100,"total":800}},"whole":{)"
         R"("joules":{"package":900,"dram":100,"total":1000},)"
         R"("uncertainty_of":{"package":[8,45,0],"dram":[2,null,0]},)"
         R"("ends_of":{"package":[4,4],"dram":[1,1]}},"phases":[{"phase":"keep","version":1,"level":1,)"
         R"("bytes":1,"seconds":1,"joules":{"package":200,"total":200})" +
         more_of_phase + "}]}";
}

TEST(EnergySummary, ADomainHasBoundsOfItsOwn) {
  const std::string off = R"(,"uncertainty_of":{"package":[3,10,1]})";
  EnergyReader reader("cpu");
  for (const int number : {1, 2}) reader.add_line(line_of_domains(number, off));
  const EnergySummary sum = reader.take();
  EXPECT_EQ(sum.whole.complete(), 1800);
  EXPECT_DOUBLE_EQ(*sum.whole.uncertainty(), 4 + 4 + 2 * 45);
  EXPECT_DOUBLE_EQ(*sum.all_phases().joules.uncertainty(), 2 * (3 + 10 + 1));
  EXPECT_TRUE(sum.program.is_estimate());  // it does not tell how far it may be off
}

TEST(EnergySummary, DomainsAreAddedUpBesideTheTotal) {
  const EnergySummary sum =
      read({line_of_domains(1, ""), line_of_domains(2, ""), energy_line(1, 130, "")});
  ASSERT_EQ(sum.domains.size(), 2u);
  const DomainEnergy& package = sum.domains.at("package");
  EXPECT_EQ(package.whole.of_known(), 1800);
  EXPECT_EQ(package.whole.complete(), std::nullopt);  // the third line tells nothing of it
  EXPECT_DOUBLE_EQ(package.whole.sampling, 8);
  EXPECT_EQ(package.phases.of_known(), 400);
  EXPECT_TRUE(sum.domains.at("dram").whole.is_estimate());
  EXPECT_EQ(sum.domains.at("dram").phases.unknown, 2u);
}

TEST(EnergySummary, ErrorsOfADomainDoNotCancelAcrossALineThatLacksIt) {
  std::string without = line_of_domains(2, "");
  without.replace(without.find(R"("package":900,)"), 14, "");
  const EnergySummary sum = read({line_of_domains(1, ""), without, line_of_domains(3, "")});
  EXPECT_DOUBLE_EQ(sum.domains.at("package").whole.sampling, 4 * 4);
  EXPECT_DOUBLE_EQ(sum.domains.at("dram").whole.sampling, 2 * 1);
}

TEST(EnergySummary, UnknownJoulesAreNoZero) {
  const EnergySummary sum = read({energy_line(1, 100, capture(7, 91, "null"))});
  EXPECT_EQ(sum.all_phases().joules.complete(), std::nullopt);
  EXPECT_EQ(sum.all_phases().joules.unknown, 1u);
}

TEST(EnergySummary, WithoutASourceThereIsNoPower) {
  const EnergySummary sum =
      read({R"({"event":"energy","incarnation":1,"time_unix_s":9,"seconds":5,"gap_s":0,"total":"",
    "sources":[],"program":{},"whole":{},"phases":[]})"});
  EXPECT_EQ(sum.seconds, 5);
  EXPECT_EQ(sum.whole.absent, 1u);
  EXPECT_EQ(sum.watts(), std::nullopt);
  EXPECT_EQ(sum.kind(), "");
}

TEST(EnergySummary, EnergyWithoutThatOfAMachineIsPartial) {
  std::string line = energy_line(1, 100, capture(7, 91));
  line.replace(line.find(R"("gap_s")"), 0, R"("machines":4,"unmetered":1,)");
  const EnergySummary sum = read({line});
  EXPECT_EQ(sum.whole.complete(), std::nullopt);
  EXPECT_EQ(sum.whole.of_known(), 1000);
  EXPECT_TRUE(sum.all_phases().joules.is_partial());
}

TEST(EnergySummary, NumbersThatNoMachineHasAreNoNumbers) {
  std::string line = energy_line(1, 100, "");
  line.replace(line.find("1000}"), 4, "1e308");
  const EnergySummary sum = read({line});
  EXPECT_EQ(sum.whole.known, 0u);
  EXPECT_EQ(sum.whole.unknown, 1u);
}

TEST(EnergySummary, IsNotSharedInNoTime) {
  std::string line = with_processors(energy_line(1, 100, ""), "0", "0", "");
  line.replace(line.find(R"("seconds":10)"), 12, R"("seconds":0)");
  EXPECT_EQ(read({line}).is_shared(), false);
}

TEST(EnergySummary, PowerIsOfTheTimeThatASourceKnows) {
  std::string line = energy_line(1, 100, "");
  line.replace(line.find(R"("gap_s":0)"), 9, R"("gap_s":5)");
  EXPECT_EQ(read({line}).watts(), 200);
}

TEST(EnergySummary, LinesOfWrongTypesAreCountedAndLeftOut) {
  const EnergySummary sum =
      read({"{\"event\":", "[]", "7", R"({"event":7})", R"({"event":"energy"})",
            R"({"event":"energy","incarnation":1,"time_unix_s":9,"seconds":"x"})",
            R"({"event":"restart","incarnation":-1,"time_unix_s":9,"version":{}})",
            energy_line(1, 100, R"({"phase":7},[],null)")});
  EXPECT_EQ(sum.energy_lines, 1u);
  EXPECT_EQ(sum.damaged_lines, 8u);
  EXPECT_EQ(sum.whole.complete(), 1000);
  EXPECT_TRUE(sum.phases.empty());
}

TEST(EnergySummary, BytesThatCannotBeDoNotWrapAround) {
  Amount amount{1, 0, ~std::uint64_t{0}, {}};
  amount.add({1, 0, 5, {}});
  EXPECT_EQ(amount.bytes, ~std::uint64_t{0});
}

// The version is captured at 93 and the lines go on to 110, so that 7 of 10 seconds of the first
// line are lost, and all of the second.
TEST(EnergySummary, ReworkIsWhatTheProgramDidSinceTheCapture) {
  const EnergySummary sum =
      read({energy_line(1, 100, capture(7, 91)), energy_line(1, 110, ""),
            R"({"event":"open","incarnation":2,"time_unix_s":115})", restart(2, 7)});
  ASSERT_EQ(sum.rework.size(), 1u);
  EXPECT_DOUBLE_EQ(sum.rework[0].seconds, 17);
  EXPECT_DOUBLE_EQ(*sum.rework[0].joules.complete(), 560 + 800);
  EXPECT_EQ(sum.rework[0].unaccounted_s, 5);
}

TEST(EnergySummary, WorkIsLostOnce) {
  const EnergySummary sum = read({energy_line(1, 100, capture(7, 91)), energy_line(1, 110, ""),
                                  restart(2, 7), energy_line(2, 130, ""), restart(3, 7)});
  ASSERT_EQ(sum.rework.size(), 2u);
  EXPECT_DOUBLE_EQ(sum.rework[0].seconds, 17);
  EXPECT_DOUBLE_EQ(sum.rework[1].seconds, 10);
}

TEST(EnergySummary, ReworkIsUnknownIfNoLineTellsOfTheCapture) {
  const EnergySummary sum = read({energy_line(1, 100, capture(7, 91)), restart(2, 6)});
  ASSERT_EQ(sum.rework.size(), 1u);
  EXPECT_FALSE(sum.rework[0].is_known);
}

TEST(EnergySummary, ARestartSaysWhenItsVersionWasCapturedIfNoOtherLineDoes) {
  std::string line = restart(2, 6);
  line.insert(line.size() - 1, R"(,"captured_unix_s":98)");
  const EnergySummary sum = read({energy_line(1, 100, ""), line});
  ASSERT_EQ(sum.rework.size(), 1u);
  EXPECT_TRUE(sum.rework[0].is_known);
  EXPECT_DOUBLE_EQ(sum.rework[0].seconds, 2);
}

// Both captures may have used more than told, for the same reason.
TEST(EnergySummary, BoundsOfPhasesAddUp) {
  const auto joules = [](const char* sampling_j) {
    return std::string(R"({"total":200},"uncertainty":{"sensor_j":0,"sampling_j":)") + sampling_j +
           "}";
  };
  const EnergySummary sum = read({energy_line(1, 100, capture(7, 91, joules("2"))),
                                  energy_line(1, 110, capture(7, 101, joules("3")))});
  EXPECT_DOUBLE_EQ(*sum.all_phases().joules.uncertainty(), 5);
  EXPECT_EQ(sum.whole.uncertainty(), std::nullopt);
}

// There are three lines of one start. Where they meet, their errors cancel.
TEST(EnergySummary, OfTheWholeJobOnlyItsEndsAreUncertain) {
  const auto line = [](int end, const char* ends) {
    std::string text = energy_line(2, end, "");
    const std::string more =
        std::string(
            R"("whole":{"uncertainty":{"sampling_j":9,"sensor_j":5,"attribution_j":0},"ends_j":)") +
        ends + ",";
    return text.replace(text.find(R"("whole":{)"), 9, more);
  };
  const EnergySummary sum = read({line(100, "[1,8]"), line(110, "[8,7]"), line(120, "[7,2]")});
  EXPECT_DOUBLE_EQ(sum.whole.sampling, 3);
  EXPECT_DOUBLE_EQ(*sum.whole.uncertainty(), 3 + 15);
}

// Returns ten seconds of which the samples at each end may miss 4 J.
std::string numbered_line(int number, int end_unix_s) {
  std::string text = energy_line(2, end_unix_s, "");
  const std::string more =
      R"("whole":{"uncertainty":{"sampling_j":8,"sensor_j":5,"attribution_j":0},"ends_j":[4,4],)";
  text.replace(text.find(R"("whole":{)"), 9, more);
  if (number > 0)
    text.replace(text.find(R"("gap_s")"), 0, R"("number":)" + std::to_string(number) + ",");
  return text;
}

TEST(EnergySummary, LinesThatAreMissingAreAGapAndTheirEnergyIsToo) {
  const EnergySummary sum =
      read({numbered_line(1, 100), numbered_line(2, 110), numbered_line(5, 140)});
  EXPECT_EQ(sum.missing_lines, 2u);
  EXPECT_EQ(sum.seconds, 50);
  EXPECT_EQ(sum.gap_s, 20);
  EXPECT_EQ(sum.watts(), 100);
  EXPECT_EQ(sum.whole.complete(), std::nullopt);
  EXPECT_EQ(sum.whole.of_known(), 3000);
  EXPECT_DOUBLE_EQ(sum.whole.sampling, 4 * 4);  // no error cancels across the hole
}

TEST(EnergySummary, LinesWithoutNumbersMissOthersWhereTheirTimesDoNotAdjoin) {
  const EnergySummary sum =
      read({numbered_line(0, 100), numbered_line(0, 110), numbered_line(0, 140)});
  EXPECT_EQ(sum.missing_lines, 1u);
  EXPECT_EQ(sum.missing_s, 20);
  EXPECT_EQ(read({numbered_line(0, 100), numbered_line(0, 111)}).missing_lines, 0u);
}

TEST(EnergySummary, LinesThatAreMissingBeforeTheFirstAreAGapSinceTheStart) {
  const EnergySummary sum =
      read({R"({"event":"open","incarnation":2,"time_unix_s":70})", numbered_line(3, 100)});
  EXPECT_EQ(sum.missing_lines, 2u);
  EXPECT_EQ(sum.missing_s, 20);
}

TEST(EnergySummary, NoErrorCancelsAcrossALineWithoutATotal) {
  std::string unknown = numbered_line(2, 110);
  unknown.replace(unknown.find("1000}"), 4, "null");
  const EnergySummary sum = read({numbered_line(1, 100), unknown, numbered_line(3, 120)});
  EXPECT_EQ(sum.missing_lines, 0u);
  EXPECT_DOUBLE_EQ(sum.whole.sampling, 4 * 4);
}

TEST(EnergySummary, OfASumWithAnEstimateThereIsNoBound) {
  const std::string joules =
      R"({"total":200},"uncertainty":{"sampling_j":1,"attribution_j":0,"sensor_j":)";
  const EnergySummary sum = read({energy_line(1, 100, capture(7, 91, joules + "5}")),
                                  energy_line(1, 110, capture(7, 101, joules + "null}"))});
  EXPECT_TRUE(sum.all_phases().joules.is_estimate());
  EXPECT_EQ(sum.all_phases().joules.uncertainty(), std::nullopt);
}

TEST(EnergySummary, APhaseOfWhichOnlyADomainIsKnownHasNoTotal) {
  const EnergySummary sum =
      read({energy_line(1, 100, capture(7, 91, R"({"dram":3,"total":null})"))});
  EXPECT_EQ(sum.all_phases().joules.unknown, 1u);
  EXPECT_EQ(sum.all_phases().joules.complete(), std::nullopt);
}

TEST(EnergySummary, TellsOfTheMachinesThatHaveNoMeters) {
  std::string line = energy_line(1, 100, "");
  line.replace(line.find(R"("gap_s")"), 0, R"("machines":4,"unmetered":3,)");
  const EnergySummary sum = read({energy_line(1, 90, ""), line});
  EXPECT_EQ(sum.machines, 4u);
  EXPECT_EQ(sum.unmetered, 3u);
}

// Nobody knows when in the time of a line its energy was used.
TEST(EnergySummary, WorkThatWasLostForPartOfALineTellsNoUncertainty) {
  std::string line = energy_line(1, 110, "");
  line.replace(line.find(R"("program":{)"), 11,
               R"("program":{"uncertainty":{"sampling_j":1,"sensor_j":0},)");
  const EnergySummary part = read({energy_line(1, 100, capture(7, 91)), line, restart(2, 7)});
  EXPECT_DOUBLE_EQ(*part.rework[0].joules.complete(), 560 + 800);
  EXPECT_EQ(part.rework[0].joules.uncertainty(), std::nullopt);
  const EnergySummary all = read({energy_line(1, 100, capture(7, 98)), line, restart(2, 7)});
  EXPECT_DOUBLE_EQ(*all.rework[0].joules.complete(), 800);
  EXPECT_EQ(all.rework[0].joules.uncertainty(), 1);
}

TEST(EnergySummary, LinesOfTheFirstSchemaHaveNoBound) {
  const EnergySummary sum =
      read({energy_line(1, 100, capture(7, 91, R"({"total":200},"uncertainty_j":2)"))});
  EXPECT_EQ(sum.all_phases().joules.sampling, 2);
  EXPECT_TRUE(sum.all_phases().joules.is_estimate());
}

std::string event(const char* kind, int incarnation, int unix_s) {
  return std::string(R"({"event":")") + kind + R"(","incarnation":)" + std::to_string(incarnation) +
         R"(,"time_unix_s":)" + std::to_string(unix_s) + "}";
}

TEST(EnergySummary, TellsOfStartsWithoutALineThatEndsThem) {
  const std::string line = energy_line(1, 110, "");
  std::string last = line;
  last.replace(last.find(R"("gap_s")"), 0, R"("last":true,)");
  const EnergySummary killed = read({event("open", 1, 100), line, event("open", 2, 115)});
  ASSERT_EQ(killed.open_ends.size(), 2u);
  EXPECT_EQ(killed.open_ends[0].seconds, 5);
  EXPECT_FALSE(killed.open_ends[0].was_closed);
  EXPECT_EQ(killed.open_ends[1].seconds, std::nullopt);
  EXPECT_EQ(killed.missing_lines, 0u);

  const EnergySummary cut = read({event("open", 1, 100), line, event("close", 1, 120)});
  ASSERT_EQ(cut.open_ends.size(), 1u);
  EXPECT_TRUE(cut.open_ends[0].was_closed);
  EXPECT_EQ(cut.missing_lines, 1u);
  EXPECT_EQ(cut.gap_s, 10);
  EXPECT_TRUE(cut.whole.is_partial());

  const std::string older = R"({"event":"close","time_unix_s":120})";
  EXPECT_TRUE(read({event("open", 1, 100), last, event("close", 1, 120)}).open_ends.empty());
  EXPECT_TRUE(read({event("open", 1, 100), line, older}).open_ends.empty());
}

TEST(EnergySummary, TellsHowFarAPhaseWasSlowed) {
  const std::string slowed =
      R"({"total":200},"slowed":{"actuator":"emulated","asked":0.85,"obtained":)";
  const EnergySummary sum =
      read({energy_line(1, 100, capture(7, 91, slowed + "0.8}")),
            energy_line(1, 110, capture(8, 101, slowed + "0.85}") + "," + capture(9, 105))});
  const Slowed all = sum.all_phases().slowed;
  EXPECT_EQ(all.times, 2u);
  EXPECT_EQ(all.obtained, 0.8);
  EXPECT_EQ(all.actuators, std::set<std::string>{"emulated"});
}

TEST(EnergySummary, PercentAreOfTheBaseline) {
  EXPECT_EQ(percent_more(150.0, 100.0), 50);
  EXPECT_EQ(percent_more(75.0, 100.0), -25);
  EXPECT_EQ(percent_more(75.0, std::nullopt), std::nullopt);
  EXPECT_EQ(percent_more(75.0, 0.0), std::nullopt);
}

}  // namespace
}  // namespace diapause::cli
