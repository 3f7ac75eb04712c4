// The energy of a job as tables, JSON and CSV; docs/command-line.md describes the fields.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>

#include "cli/energy_summary.hpp"
#include "cli/slurm_energy.hpp"
#include "energy/measured_job.hpp"

namespace diapause::cli {

struct NamedEnergy {
  std::string ledger;  // path
  EnergySummary energy;
  energy::MeasuredJob measured;
  std::optional<SlurmEnergy> slurm = {};  // none: nobody has asked, or Slurm does not know
};

// `baselines`: runs to compare with; empty: none.
std::string energy_text(const NamedEnergy& job, std::span<const NamedEnergy> baselines);
std::string energy_json(const NamedEnergy& job, std::span<const NamedEnergy> baselines);
std::string energy_csv(const EnergySummary& energy);

// Joules with their uncertainty, as "284 +- 30 J", "~ 284 J" if nobody knows how far the source is
// off, or "unknown".
std::string joules_text(const Joules& joules);
// Sets `joules`, `uncertainty_j`, `uncertainty`, `unknown` and `absent` as far as they are known.
void put_joules(nlohmann::ordered_json& object, const Joules& joules);

}  // namespace diapause::cli
