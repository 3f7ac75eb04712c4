// Input: the text of a configuration file and, behind a byte 0, environment variables as lines
// NAME=VALUE.
#include <cmath>
#include <sstream>

#include "config/settings.hpp"
#include "fuzz.hpp"

using namespace diapause;

namespace {

config::Environment environment_of(const std::string& lines) {
  config::Environment environment;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos)
      environment.emplace_back(line.substr(0, equals), line.substr(equals + 1));
  }
  return environment;
}

void check_levels(const config::Settings& settings) {
  for (int number = 1; number <= 4; ++number) {
    const config::LevelSettings& level = settings.level(number);
    fuzz::must_hold(level.keep >= 1, "a level keeps a version");
    fuzz::must_hold(level.interval.seconds >= 0 && std::isfinite(level.interval.seconds),
                    "an interval is a time");
    fuzz::must_hold(level.interval.seconds == 0 || level.interval.calls == 0,
                    "a level has one interval");
    fuzz::must_hold(level.tier != config::TierKind::local || !settings.local_path.empty(),
                    "a tier has a directory");
  }
  fuzz::must_hold(
      settings.parity >= 1 && settings.parity < settings.group_nodes && settings.group_nodes <= 255,
      "a group outnumbers its parity");
}

void check_places(const config::Settings& settings) {
  fuzz::must_hold(!settings.memory_path.empty() && !settings.global_path.empty(),
                  "a tier has a directory");
  for (const std::string& name : settings.node_names) {
    fuzz::must_hold(
        !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos,
        "a node's name stays in its directory");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = input.find('\0');
  const std::string lines = end == std::string::npos ? "" : input.substr(end + 1);
  const auto settings =
      config::parse_settings(input.substr(0, end), "file", environment_of(lines), 0);
  if (!settings) {
    const Error& error = settings.error();
    fuzz::must_hold(error.code == Code::config && !error.message.empty(), "a refusal says why");
    return 0;
  }
  check_levels(*settings);
  check_places(*settings);
  return 0;
}
