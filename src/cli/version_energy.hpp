// The energy of the checkpoint that made a version, from the ledger of its job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/arguments.hpp"
#include "cli/energy_summary.hpp"

namespace diapause::cli {

struct VersionEnergy {
  Amount amount;     // all phases of the checkpoint
  std::string kind;  // how the joules are known: "measured", "modelled" or "measured and modelled"
  std::string domain;  // of which they are: "node", "package+dram"
  std::string source;  // from where they are known
};

// Returns nothing if there is no ledger here or if it has no energy of this version.
std::optional<VersionEnergy> energy_of_version(const std::string& job, std::uint64_t version,
                                               const Places& places);

}  // namespace diapause::cli
