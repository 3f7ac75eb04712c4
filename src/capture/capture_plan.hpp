// Which way each region of a capture takes.
#pragma once

#include <string>
#include <vector>

#include "capture/capture_job.hpp"
#include "config/settings.hpp"
#include "policy/capture_choice.hpp"

namespace diapause::capture {

enum class DrainHost {
  own_thread,  // drain() runs beside the program
  caller       // drain() keeps the program waiting, so that write protection gains nothing
};

struct PlanInputs {
  config::CaptureStrategy strategy;
  DrainHost drain_host;
  const policy::CaptureCosts& costs;
  std::string protection_refusal;  // of the machine, for all regions; empty: none
  std::string tracking_refusal;
};

// Gives every job its way, and its report method and reason. Looks at this process's mappings and open files.
void plan_captures(std::vector<CaptureJob>& jobs, const PlanInputs& inputs);

}  // namespace diapause::capture
