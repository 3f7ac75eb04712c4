// Energy for a monitoring system: the text that node exporters collect from files.
#pragma once

#include <span>
#include <string>

#include "energy/meter.hpp"
#include "energy/series.hpp"

namespace diapause::energy {

// OpenMetrics text 1.0: for each domain, energy since the start as a counter, the seconds that it
// stands for, and those that are missing. `amounts`: since the start, of each domain; a domain that
// has told nothing is left out.
std::string openmetrics_text(std::span<const Zone> domains, std::span<const Amount> amounts);

}  // namespace diapause::energy
