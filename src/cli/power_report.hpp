// Prints what a node draws, as text and as JSON; docs/command-line.md describes the fields.
#pragma once

#include <string>

#include "energy/sampler.hpp"

namespace diapause::cli {

// One reading: the last interval, and everything since the start.
struct PowerLook {
  std::string host;
  double seconds = 0;
  energy::Usage usage;
  energy::Usage since_start;
};

std::string power_text(energy::Sampler& sampler, const PowerLook& look);
std::string power_json(energy::Sampler& sampler, const PowerLook& look);  // one line

// Returns text such as "284 +- 2 J", "~ 280 J" where nobody knows the bound, or "?".
std::string joules_text(const energy::Amount& amount);
// Returns the parts of its bound, such as " (off by up to 0.3 J by sampling, 14 J by the sensor or
// model)", with "?" where nobody knows.
std::string parts_text(const energy::Amount& amount);

// Returns the parameters of the model, each with its source.
std::string profile_text(const energy::Profile& profile);

}  // namespace diapause::cli
