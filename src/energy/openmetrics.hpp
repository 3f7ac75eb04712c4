// Writes energy for a monitoring system, as the text that node exporters collect from files.
#pragma once

#include <span>
#include <string>

#include "energy/meter.hpp"
#include "energy/series.hpp"

namespace diapause::energy {

// Returns OpenMetrics text 1.0. It has for each domain the energy since the start as a counter, how
// far that may be off, in all and by cause, the seconds that it stands for, and those that are
// missing. Nobody is charged with the energy of a source, so that there is no error of attribution.
// `amounts` has those of each domain since the start; a domain that has told nothing is left out.
std::string openmetrics_text(std::span<const Zone> domains, std::span<const Amount> amounts);

}  // namespace diapause::energy
