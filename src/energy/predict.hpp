// Predicts what a run with checkpoints takes, on a machine and with a program for which that was
// fitted: the sections [app.*] of a profile. The code is pure. docs/published.md says how well it
// does.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace diapause::energy {

// The costs are those of one node. A run has a constant and, for each checkpoint of a level, a
// cost.
struct AppCosts {
  double runtime_s = 0, node_w = 0;  // without checkpoints
  double bytes = 0;                  // of a checkpoint
  double constant_s = 0, constant_j = 0;
  std::array<double, 4> level_s{}, level_j{};
  double runtime_off_percent = 0,
         energy_off_percent = 0;  // either way, of the run without checkpoints
  std::string source = {};        // of the costs
};

// Reads the section [app.<app>] of a profile. Code::config names the profile, and which programs it
// has.
Result<AppCosts> parse_app_costs(std::string_view profile, const std::string& origin,
                                 const std::string& app);

// Has the minutes between checkpoints of each level, as in "ckp(3,5,7,11)". With "none" there are
// no checkpoints. Each minute for which a level is due has a checkpoint of the deepest that is.
struct MinuteSchedule {
  std::array<std::uint64_t, 4> every_min{};  // 0: never

  int level_due(std::uint64_t minute) const;  // 1 to 4, or 0 for none
};
Result<MinuteSchedule> parse_minute_schedule(const std::string& text);

struct PredictedRun {
  std::array<std::uint64_t, 4> checkpoints{};
  double seconds = 0, joules = 0;
  double seconds_off = 0, joules_off = 0;

  double watts() const { return joules / seconds; }
  double watts_off() const { return watts() * (seconds_off / seconds + joules_off / joules); }
};

// A checkpoint has `bytes` on the node, and what it costs is taken to grow with them. That is an
// assumption: where the bytes are not those that the costs were fitted with, the bound includes all
// that it adds or takes away. Without checkpoints nothing is predicted, because that is the run
// that the costs are of. Code::config if the run does not end, or uses no energy.
Result<PredictedRun> predict_run(const AppCosts& costs, const MinuteSchedule& schedule,
                                 double bytes);

}  // namespace diapause::energy
