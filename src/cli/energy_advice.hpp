// Says what would save energy in a job like this one, how much, and how sure that is. The code is
// pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/energy_summary.hpp"
#include "cli/hindsight.hpp"

namespace diapause::cli {

struct Advice {
  std::string what;
  Joules saves;
  bool is_at_most = false;  // it saves no more than that, and may save less
  std::string how_sure;
};

// Returns the greatest saving first, and nothing that would save less than a hundredth of the job's
// energy.
std::vector<Advice> advice_for(const EnergySummary& energy,
                               const std::optional<Hindsight>& hindsight);

}  // namespace diapause::cli
