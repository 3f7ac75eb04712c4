#include "energy/trace.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "energy/openmetrics.hpp"

namespace diapause::energy {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Zone package() {
  Zone zone;
  zone.source = "powercap intel-rapl:0";
  zone.domain = Domain::package;
  zone.part = "0";
  zone.resolution_j = 6.1e-5;
  return zone;
}

TEST(Trace, IsReadAsItWasWritten) {
  TraceHead head{"n1", 1700000000, 0.1, {package()}, {}};
  const auto again = parse_trace_head(trace_head_line(head));
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(again->host, "n1");
  EXPECT_EQ(again->period_s, 0.1);
  ASSERT_EQ(again->domains.size(), 1U);
  EXPECT_EQ(again->domains[0].source, "powercap intel-rapl:0");
  EXPECT_EQ(again->domains[0].domain, Domain::package);
  EXPECT_EQ(again->domains[0].kind, Kind::measured);
  EXPECT_EQ(again->total.name, "package");
  EXPECT_EQ(again->domains[0].accuracy.share, package().accuracy.share);
  EXPECT_EQ(again->domains[0].accuracy.source, package().accuracy.source);

  const auto row = parse_trace_row(trace_row_line({0.25, {{0.25, 12.5, 0.2}}}), 1);
  ASSERT_TRUE(row.has_value());
  EXPECT_EQ(row->time_s, 0.25);
  EXPECT_EQ(row->points[0].joules, 12.5);
  EXPECT_EQ(row->points[0].covered_s, 0.2);
  EXPECT_TRUE(row->off_j.empty());
  const auto with_bounds = parse_trace_row(trace_row_line({0.25, {{0.25, 12.5, 0.2}}, {0.75}}), 1);
  ASSERT_TRUE(with_bounds.has_value());
  EXPECT_EQ(with_bounds->off_j, std::vector<double>{0.75});
}

TEST(Trace, TellsHowFarItsSourcesMayBeOffAndOlderOnesHowFarOthersAre) {
  for (const std::optional<double> share : {std::optional(0.02), std::optional<double>()}) {
    Zone zone = package();
    zone.kind = Kind::modelled;
    zone.accuracy = {share, "a profile"};
    std::string line = trace_head_line({"n1", 1700000000, 0.1, {zone}, {}});
    EXPECT_EQ(parse_trace_head(line)->domains[0].accuracy.share, share);
    EXPECT_EQ(parse_trace_head(line)->domains[0].accuracy.source, "a profile");
  }
  for (const char* const kind : {"measured", "modelled"}) {
    const auto older = parse_trace_head(fmt::format(
        R"({{"what":"diapause power trace","schema":1,"domains":[{{"domain":"node","kind":"{}"}}]}})",
        kind));
    EXPECT_EQ(older->domains[0].accuracy.share.has_value(), std::string(kind) == "measured");
  }
}

TEST(Trace, OfATraceTellsThatItWasReplayedAndOfWhat) {
  for (const Kind kind : {Kind::measured, Kind::modelled}) {
    Zone zone = package();
    zone.kind = kind;
    zone.is_replayed = true;
    const std::string line =
        trace_head_line({"n1", 1700000000, 0.1, {zone}, choose_total({&zone, 1})});
    EXPECT_EQ(json::parse(line)["domains"][0]["kind"], "replayed");
    EXPECT_EQ(json::parse(line)["total"]["kind"], "replayed");
    const auto again = parse_trace_head(line);
    ASSERT_TRUE(again.has_value());
    EXPECT_TRUE(again->domains[0].is_replayed);
    EXPECT_EQ(again->domains[0].kind, kind);
    EXPECT_TRUE(again->total.is_replayed);
  }
}

TEST(Trace, ThatIsNoneIsRefused) {
  for (const char* line :
       {"", "{", "[]", "{}", R"({"what": 3})", R"({"what": "diapause power trace", "schema": 2})",
        R"({"what": "diapause power trace", "schema": 1, "domains": [3]})",
        R"({"what": "diapause power trace", "schema": 1, "domains": [{"domain": "cpu"}]})"}) {
    EXPECT_FALSE(parse_trace_head(line).has_value()) << line;
  }
  for (const char* line :
       {"", "3", R"({"t": 1})", R"({"t": 1, "j": [1, 2], "c": [1, 2]})",
        R"({"t": 1, "j": 1, "c": 1})", R"({"t": 1, "j": ["a"], "c": [1]})",
        R"({"t": -1, "j": [1], "c": [1]})", R"({"t": 1, "j": [-1], "c": [1]})",
        R"({"t": 1, "j": [1.1e12], "c": [1]})", R"({"t": 1, "j": [1], "c": [1], "o": [-1]})",
        R"({"t": 1, "j": [1], "c": [1], "o": [1, 2]})",
        R"({"t": 1, "j": [1], "c": [1], "o": ["a"]})"}) {
    EXPECT_FALSE(parse_trace_row(line, 1).has_value()) << line;
  }
}

// This is the example of docs/formats/trace.md.
TEST(Trace, IsWhatItsDocumentShows) {
  std::ifstream document(std::filesystem::path(DIAPAUSE_SOURCE_DIR) / "docs/formats/trace.md");
  std::vector<std::string> lines;
  for (std::string line; std::getline(document, line);) {
    if (line.starts_with("    {")) lines.push_back(line.substr(4));
  }
  ASSERT_EQ(lines.size(), 3U);
  const auto head = parse_trace_head(lines[0]);
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(trace_head_line(*head), lines[0]);
  for (const std::size_t i : {1, 2})
    EXPECT_EQ(trace_row_line(*parse_trace_row(lines[i], 1)), lines[i]);
}

TEST(OpenMetrics, TellWhatEachSourceHasToldAndNothingOfTheOthers) {
  Zone odd = package();
  odd.source = "hwmon \"odd\\name\"\xff";
  const std::vector<Zone> zones = {package(), odd, package()};
  const std::vector<Amount> amounts = {
      {12.5, {0.1, 1}, 0.5, 2}, {1, {.is_bounded = false}, 0, 1}, {0, {}, 3, 0}};
  const std::string text = openmetrics_text(zones, amounts);
  EXPECT_THAT(
      text,
      HasSubstr("# TYPE diapause_energy_joules counter\n# UNIT diapause_energy_joules joules\n"));
  EXPECT_THAT(text, HasSubstr("diapause_energy_joules_total{source=\"powercap "
                              "intel-rapl:0\",domain=\"package\",part=\"0\","
                              "kind=\"measured\"} 12.500000\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE diapause_energy_gap_seconds gauge\n"));
  EXPECT_THAT(text, HasSubstr("diapause_energy_gap_seconds{source=\"powercap intel-rapl:0\""));
  EXPECT_THAT(text, HasSubstr("source=\"hwmon \\\"odd\\\\name\\\"%FF\""));
  EXPECT_EQ(std::count(text.begin(), text.end(), '{'),
            10);  // nobody knows how far the second is off, and the third has told nothing
  EXPECT_THAT(text, testing::EndsWith("# EOF\n"));
}

TEST(OpenMetrics, TellTheBoundInAllAndByCause) {
  const std::vector<Zone> zones = {package()};
  const std::vector<Amount> amounts = {{100, {0.5, 5}, 0, 2}};
  const std::string text = openmetrics_text(zones, amounts);
  const std::string labels =
      R"({source="powercap intel-rapl:0",domain="package",part="0",kind="measured"})";
  const std::string name = "diapause_energy_uncertainty";
  EXPECT_THAT(text, HasSubstr(name + "_joules" + labels + " 5.500000\n"));
  EXPECT_THAT(text, HasSubstr(name + "_sampling_joules" + labels + " 0.500000\n"));
  EXPECT_THAT(text, HasSubstr(name + "_sensor_joules" + labels + " 5.000000\n"));
}

TEST(OpenMetrics, KeepLabelsApartThatDifferInOneByte) {
  std::vector<Zone> zones = {package(), package(), package()};
  zones[0].part = "\xc3\xa4";
  zones[1].part = "\xc3\xb6";
  zones[2].part = "%C3%B6";
  const std::vector<Amount> amounts(3, Amount{1, {}, 0, 1});
  const std::string text = openmetrics_text(zones, amounts);
  for (const char* const part : {"%C3%A4", "%C3%B6", "%25C3%25B6"})
    EXPECT_THAT(text, HasSubstr(fmt::format("part=\"{}\"", part)));
}

}  // namespace
}  // namespace diapause::energy
