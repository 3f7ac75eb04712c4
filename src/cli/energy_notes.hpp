// Writes the notes that must be known beside the numbers of a job's energy, as lines of text.
#pragma once

#include <span>
#include <string>

#include "cli/energy_report.hpp"

namespace diapause::cli {

// Returns which domains the energy is of, whether it is measured or modelled, and by which sources.
std::string source_text(const EnergySummary& energy);

// Returns a line for each note; "" if there are none.
std::string notes_text(const NamedEnergy& job);
std::string rework_text(const Rework& rework);
std::string comparison_notes(const EnergySummary& energy, std::span<const NamedEnergy> baselines);

}  // namespace diapause::cli
