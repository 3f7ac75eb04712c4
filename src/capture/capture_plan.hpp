// Chooses how each region of a capture is copied.
#pragma once

#include <string>
#include <vector>

#include "capture/region_capture.hpp"
#include "config/settings.hpp"
#include "policy/capture_choice.hpp"

namespace diapause::capture {

enum class DrainHost {
  own_thread,  // drain() runs concurrently with the program
  caller       // the program waits for drain(), so that write protection gains nothing
};

struct PlanInputs {
  config::CaptureStrategy strategy;
  DrainHost drain_host;
  const policy::CaptureCosts& costs;
  std::string protection_refusal;  // a reason of the machine that concerns all regions; empty if
                                   // there is none
  std::string tracking_refusal;
};

// Decides how every region is copied, and sets the method and the reason in its report. Reads this
// process's mappings and open files.
void plan_captures(std::vector<RegionCapture>& regions, const PlanInputs& inputs);

}  // namespace diapause::capture
