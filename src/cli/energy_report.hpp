// The energy of a job as tables, JSON and CSV; docs/command-line.md describes the fields.
#pragma once

#include <span>
#include <string>

#include "cli/energy_summary.hpp"
#include "energy/measured_job.hpp"

namespace diapause::cli {

struct NamedEnergy {
  std::string ledger;  // path
  EnergySummary energy;
  energy::MeasuredJob measured;
};

// `baselines`: runs to compare with; empty: none.
std::string energy_text(const NamedEnergy& job, std::span<const NamedEnergy> baselines);
std::string energy_json(const NamedEnergy& job, std::span<const NamedEnergy> baselines);
std::string energy_csv(const EnergySummary& energy);

}  // namespace diapause::cli
