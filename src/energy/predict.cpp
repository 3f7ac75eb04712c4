#include "energy/predict.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <vector>

namespace diapause::energy {
namespace {

constexpr std::uint64_t kMostMinutes = 1000000;

class AppReader {
 public:
  AppReader(const toml::table& app, std::string where) : app_(app), where_(std::move(where)) {}

  Result<AppCosts> read() {
    AppCosts costs;
    take("runtime_s", costs.runtime_s);
    take("node_w", costs.node_w);
    take("bytes", costs.bytes);
    take("constant_s", costs.constant_s);
    take("constant_j", costs.constant_j);
    for (std::size_t level = 0; level < costs.level_s.size(); ++level) {
      take(fmt::format("level_{}_s", level + 1), costs.level_s[level]);
      take(fmt::format("level_{}_j", level + 1), costs.level_j[level]);
    }
    take("runtime_off_percent", costs.runtime_off_percent);
    take("energy_off_percent", costs.energy_off_percent);
    if (!missing_.empty()) {
      return fail(Code::config,
                  fmt::format("{}: write {{ value = 1.5, source = \"where it is from\" }} for {}",
                              where_, fmt::join(missing_, ", ")));
    }
    if (!(costs.runtime_s > 0) || !(costs.node_w > 0) || !(costs.bytes > 0)) {
      return fail(Code::config, where_ + ": runtime_s, node_w and bytes must be above 0");
    }
    const auto cheapest = std::min_element(costs.level_s.begin(), costs.level_s.end());
    if (costs.constant_s < 0 || *cheapest < 0)
      return fail(Code::config, where_ + ": a time is below 0");
    costs.source = app_["level_1_s"]["source"].value_or("");
    return costs;
  }

 private:
  void take(const std::string& key, double& number) {
    const auto value = app_[key]["value"].value<double>();
    const auto source = app_[key]["source"].value<std::string>();
    if (!value || !std::isfinite(*value) || std::abs(*value) > 1e18 || !source || source->empty()) {
      missing_.push_back(key);
    } else {
      number = *value;
    }
  }

  const toml::table& app_;
  std::string where_;
  std::vector<std::string> missing_;
};

Result<AppCosts> find_app(const toml::table& profile, const std::string& origin,
                          const std::string& app) {
  const toml::table* const apps = profile["app"].as_table();
  std::vector<std::string> names;
  if (apps != nullptr) {
    for (const auto& [name, node] : *apps) names.emplace_back(name.str());
    if (const toml::table* const found = (*apps)[app].as_table()) {
      return AppReader(*found, fmt::format("{}: [app.{}]", origin, app)).read();
    }
  }
  if (names.empty()) {
    return fail(
        Code::config,
        origin + " has no program of which costs of checkpoints are known: no section [app.*]");
  }
  return fail(Code::config, fmt::format("{} has no program '{}'; it has {}", origin, app,
                                        fmt::join(names, ", ")));
}

}  // namespace

Result<AppCosts> parse_app_costs(std::string_view profile, const std::string& origin,
                                 const std::string& app) {
  // The packaged library reports by exception; no other can leave it but one for memory.
  try {
    return find_app(toml::parse(profile, origin), origin, app);
  } catch (const toml::parse_error& error) {
    return fail(Code::config, fmt::format("{}:{}: not valid TOML: {}", origin,
                                          error.source().begin.line, error.description()));
  }
}

std::array<std::uint64_t, 4> MinuteSchedule::taken_in(double seconds) const {
  std::array<std::uint64_t, 4> taken{};
  const auto minutes =
      static_cast<std::uint64_t>(std::clamp(seconds / 60, 0.0, static_cast<double>(kMostMinutes)));
  for (std::uint64_t minute = 1; minute <= minutes; ++minute) {
    for (std::size_t level = taken.size(); level > 0; --level) {
      if (every_min[level - 1] == 0 || minute % every_min[level - 1] != 0) continue;
      ++taken[level - 1];
      break;
    }
  }
  return taken;
}

Result<MinuteSchedule> parse_minute_schedule(const std::string& text) {
  MinuteSchedule schedule;
  if (text == "none") return schedule;
  const auto wrong = [&] {
    return fail(
        Code::argument,
        fmt::format("--schedule '{}': write the minutes between checkpoints of each of four "
                    "levels, as in 'ckp(3,5,7,11)', or 'none'",
                    text));
  };
  constexpr std::string_view kHead = "ckp(";
  if (!text.starts_with(kHead) || !text.ends_with(')')) return wrong();
  const char* at = text.data() + kHead.size();
  const char* const end = text.data() + text.size() - 1;
  for (std::size_t level = 0; level < schedule.every_min.size(); ++level) {
    const auto [next, error] = std::from_chars(at, end, schedule.every_min[level]);
    const bool is_last = level + 1 == schedule.every_min.size();
    if (error != std::errc() || schedule.every_min[level] > kMostMinutes ||
        (next == end) != is_last)
      return wrong();
    if (!is_last && *next != ',') return wrong();
    at = next + 1;
  }
  return schedule;
}

PredictedRun predict_run(const AppCosts& costs, const MinuteSchedule& schedule, double bytes) {
  PredictedRun run;
  run.seconds = costs.runtime_s;
  run.joules = costs.runtime_s * costs.node_w;
  if (schedule.every_min == MinuteSchedule().every_min) return run;
  const double size = bytes / costs.bytes;
  const auto sum = [&](double constant, const std::array<double, 4>& level) {
    return constant +
           size * std::inner_product(level.begin(), level.end(), run.checkpoints.begin(), 0.0);
  };
  // Checkpoints make the run longer, and a longer run has more of them.
  constexpr int kMostRounds = 100;
  for (int round = 0; round < kMostRounds; ++round) {
    run.checkpoints = schedule.taken_in(run.seconds);
    const double longer_s = costs.runtime_s + sum(costs.constant_s, costs.level_s);
    if (longer_s <= run.seconds) break;
    run.seconds = longer_s;
  }
  run.joules += sum(costs.constant_j, costs.level_j);
  run.seconds_off = costs.runtime_off_percent / 100 * costs.runtime_s;
  run.joules_off = costs.energy_off_percent / 100 * costs.runtime_s * costs.node_w;
  return run;
}

}  // namespace diapause::energy
