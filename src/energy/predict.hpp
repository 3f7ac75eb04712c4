// Predicts what a run with checkpoints takes, on a machine and with a program for which that was
// fitted: the sections [app.*] of a profile. The code is pure. docs/published.md says how well it
// does.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "energy/meter.hpp"

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

// Says how far a prediction may be off, either way, by cause. All energy of the node is charged to
// the run, so there is no part for that.
struct PredictionOff {
  // It is what rows were off that were left out of the fit: runs that differ, what samples of the
  // power have missed, and what no cost of a checkpoint can tell.
  double fit = 0;
  double bytes = 0;  // costs are taken to grow with the bytes of a checkpoint
  double meter = 0;  // the meter of that machine, which was the same for both runs

  double of_change() const { return fit + bytes; }  // against the run without checkpoints
  double together() const { return fit + bytes + meter; }
};

struct PredictedRun {
  std::array<std::uint64_t, 4> checkpoints{};
  double seconds = 0, joules = 0;
  PredictionOff seconds_off, joules_off;

  double watts() const { return joules / seconds; }
  PredictionOff watts_off() const;
};

// A checkpoint has `bytes` on the node, and what it costs is taken to grow with them. That is an
// assumption: where the bytes are not those that the costs were fitted with, the bound includes all
// that it adds or takes away. Without checkpoints nothing is predicted, because that is the run
// that the costs are of, and only the meter may be off. Code::config if the run does not end, or
// uses no energy.
Result<PredictedRun> predict_run(const AppCosts& costs, const MinuteSchedule& schedule,
                                 double bytes);

// Says how far the meter of a published machine may be off, and who says so.
Accuracy published_meter();

}  // namespace diapause::energy
