// Accounts for what a launched job waited for while a version of it was captured.
#pragma once

#include <optional>

#include "engine/node/captures.hpp"

namespace diapause::agent {

// When the steps of a capture began, in seconds of sys::monotonic_s().
struct Course {
  double stopped_s = 0;            // the first thread stood still
  double frozen_s = 0;             // everything stood still, on all nodes
  double connections_s = 0;        // everything was taken down but what waits in connections
  double dumped_s = 0;             // that, too
  std::optional<double> thawed_s;  // the job ran on; none: it still stands still
};

// Tells the energy account of these steps, and that the job goes on beside the levels unless it
// stands still.
void account_for(const Course& course, engine::Captures& captures);

}  // namespace diapause::agent
