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

tl::unexpected<Error> does_not_end(const AppCosts& costs, double size) {
  if (costs.runtime_s / 60 > static_cast<double>(kMostMinutes)) {
    return fail(Code::config,
                fmt::format("a run of {:.4g} s without checkpoints is longer than the "
                            "{} minutes for which checkpoints are counted",
                            costs.runtime_s, kMostMinutes));
  }
  return fail(
      Code::config,
      fmt::format("with checkpoints of {:.4g} bytes the run has not ended after {} minutes: "
                  "they take about as long as the time between them; take smaller ones, or "
                  "take them less often",
                  size * costs.bytes, kMostMinutes));
}

// Checkpoints make the run longer, and a longer run has more of them.
Result<PredictedRun> walk_minutes(const AppCosts& costs, const MinuteSchedule& schedule,
                                  double size) {
  PredictedRun run;
  run.seconds = costs.runtime_s;
  run.joules = costs.runtime_s * costs.node_w;
  if (schedule.every_min == MinuteSchedule().every_min) return run;
  bool has_any = false;
  for (std::uint64_t minute = 1; static_cast<double>(minute) * 60 <= run.seconds; ++minute) {
    if (minute > kMostMinutes) return does_not_end(costs, size);
    const int level = schedule.level_due(minute);
    if (level == 0) continue;
    const auto at = static_cast<std::size_t>(level - 1);
    ++run.checkpoints[at];
    run.seconds += size * costs.level_s[at] + (has_any ? 0 : costs.constant_s);
    run.joules += size * costs.level_j[at] + (has_any ? 0 : costs.constant_j);
    has_any = true;
  }
  return run;
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

int MinuteSchedule::level_due(std::uint64_t minute) const {
  for (std::size_t level = every_min.size(); level > 0; --level) {
    if (every_min[level - 1] != 0 && minute % every_min[level - 1] == 0)
      return static_cast<int>(level);
  }
  return 0;
}

Result<MinuteSchedule> parse_minute_schedule(const std::string& text) {
  MinuteSchedule schedule;
  if (text == "none") return schedule;
  const auto wrong = [&] {
    return fail(
        Code::argument,
        fmt::format("--schedule '{}': write the minutes between checkpoints of each of four "
                    "levels, as in 'ckp(3,5,7,11)', or 'none'; they are whole, because a run "
                    "that is predicted looks once a minute which level is due",
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

Result<PredictedRun> predict_run(const AppCosts& costs, const MinuteSchedule& schedule,
                                 double bytes) {
  const double size = bytes / costs.bytes;
  PredictedRun run;
  DIAPAUSE_TRY_ASSIGN(run, walk_minutes(costs, schedule, size));
  if (!(run.joules > 0)) {
    return fail(Code::config,
                fmt::format("the costs of checkpoints make the run use {:.4g} J: constant_j and "
                            "level_1_j to level_4_j of the profile cannot be right",
                            run.joules));
  }
  run.joules_off.meter = *published_meter().share * run.joules;
  if (run.checkpoints == PredictedRun().checkpoints) return run;
  const auto at_fitted_bytes = [&](const std::array<double, 4>& level) {
    return std::abs(std::inner_product(level.begin(), level.end(), run.checkpoints.begin(), 0.0));
  };
  // The more of the run is checkpoints, the more of them an error of their cost adds.
  const double more_of_them = run.seconds / costs.runtime_s;
  const double fit = std::max(1.0, size), beyond = std::abs(size - 1);
  const double fit_s = costs.runtime_off_percent / 100 * costs.runtime_s;
  const double fit_j = costs.energy_off_percent / 100 * costs.runtime_s * costs.node_w;
  run.seconds_off.fit = fit * fit_s * more_of_them;
  run.seconds_off.bytes = beyond * at_fitted_bytes(costs.level_s) * more_of_them;
  run.joules_off.fit = fit * fit_j * more_of_them;
  run.joules_off.bytes = beyond * at_fitted_bytes(costs.level_j) * more_of_them;
  return run;
}

PredictionOff PredictedRun::watts_off() const {
  const auto off = [this](double PredictionOff::*part) {
    return watts() * (seconds_off.*part / seconds + joules_off.*part / joules);
  };
  return {off(&PredictionOff::fit), off(&PredictionOff::bytes), off(&PredictionOff::meter)};
}

Accuracy published_meter() { return Zone().accuracy; }

}  // namespace diapause::energy
