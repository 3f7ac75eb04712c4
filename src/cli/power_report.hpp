// What a node draws, as text and as JSON; docs/command-line.md describes the fields.
#pragma once

#include <string>

#include "energy/sampler.hpp"

namespace diapause::cli {

// One look: the last stretch of time, and all since the start.
struct PowerLook {
  std::string host;
  double seconds = 0;
  energy::Usage usage;
  energy::Usage since_start;
};

std::string power_text(energy::Sampler& sampler, const PowerLook& look);
std::string power_json(energy::Sampler& sampler, const PowerLook& look);  // one line

// The parameters of the model, each with where it is from.
std::string profile_text(const energy::Profile& profile);

}  // namespace diapause::cli
