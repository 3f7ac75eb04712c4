// Prints simulated runs as text, as JSON, and as a file of events.
#pragma once

#include <string>
#include <vector>

#include "cli/simulation_setup.hpp"
#include "simulate/simulation.hpp"

namespace diapause::cli {

std::string simulation_text(const SimulationSetup& setup,
                            const std::vector<simulate::History>& histories);
std::string simulation_json(const SimulationSetup& setup,
                            const std::vector<simulate::History>& histories);

// Returns JSON if the path ends in .json, else CSV.
std::string events_file(const simulate::History& history, const std::string& path);

}  // namespace diapause::cli
