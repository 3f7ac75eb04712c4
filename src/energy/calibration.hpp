// Fits a profile to what was measured on a machine while it did known things. The code is pure;
// `diapause power calibrate` measures.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "energy/profile.hpp"

namespace diapause::energy {

struct CalibrationSample {
  std::string step;  // "idle", "busy", ...
  Activity activity;
  std::map<Domain, double> watts;  // measured, for all parts together
};

// These turn a sample into a line of a file that keeps samples of several runs, and back.
std::string sample_line(const CalibrationSample& sample);
Result<CalibrationSample> parse_sample(const std::string& line);

// Fits idle, busy and j_per_gb of every domain that all samples have; where the node was measured
// too, what is left of it is `other`. With busy samples at three or more clocks it fits P(f) as
// well, and the others at the highest clock. Code::argument says which samples are missing. `where`
// goes into the source of each number.
Result<Profile> fit_profile(std::span<const CalibrationSample> samples, const std::string& where);

// Returns by which share of what the profile says its power of all domains together may be off: the
// greatest distance from samples that it was not fitted to (hold-out validation), and what the
// counters that measured them may be off themselves, by their share `counters_off`. Code::argument
// names the sample that lacks a domain of the profile.
Result<Number> hold_out_error(const Profile& profile, std::span<const CalibrationSample> samples,
                              double counters_off, const std::string& where);

}  // namespace diapause::energy
