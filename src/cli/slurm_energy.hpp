// Says what Slurm's accounting knows about the energy of a job, to be shown beside the ledger.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace diapause::cli {

struct SlurmEnergy {
  std::set<std::string> jobs;  // the jobs whose energy it knows
  double joules = 0;
  double seconds = 0;  // run time of these jobs
};

// Reads what `sacct --noheader --parsable2 --format JobID,JobIDRaw,ConsumedEnergyRaw,ElapsedRaw`
// printed of these jobs, by their raw ids. Takes the line of a job itself, and where that has no
// energy the sum of its steps, without the batch step, which runs beside the others. The parts of a
// heterogeneous job run at the same time, and other tasks of an array are other jobs. Returns
// nullopt if no energy is told, which is what a cluster without its plugin for energy says.
std::optional<SlurmEnergy> parse_sacct(std::string_view answer, const std::set<std::string>& jobs);

// Asks `sacct` once for all of the jobs, and waits for 20 s at most. Returns nullopt if it knows
// the energy of none, or if there is no `sacct`.
std::optional<SlurmEnergy> ask_sacct(const std::set<std::string>& jobs);

}  // namespace diapause::cli
