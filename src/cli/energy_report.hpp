// Shows the energy of a job as tables, JSON and CSV. docs/command-line.md describes the fields.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/energy_summary.hpp"
#include "cli/slurm_energy.hpp"
#include "energy/measured_job.hpp"

namespace diapause::cli {

struct NamedEnergy {
  std::string ledger;  // path
  EnergySummary energy;
  energy::MeasuredJob measured;
  std::optional<SlurmEnergy> slurm = {};  // nullopt: nobody has asked, or Slurm does not know
};

std::vector<EnergySummary> summaries_of(std::span<const NamedEnergy> jobs);

// `baselines` are runs to compare with.
std::string energy_text(const NamedEnergy& job, std::span<const NamedEnergy> baselines);
std::string energy_json(const NamedEnergy& job, std::span<const NamedEnergy> baselines);
std::string energy_csv(const EnergySummary& energy);

// Sets `joules`, `uncertainty_j`, `uncertainty`, `unknown` and `absent` as far as they are known.
void put_joules(nlohmann::ordered_json& object, const Joules& joules);

}  // namespace diapause::cli
