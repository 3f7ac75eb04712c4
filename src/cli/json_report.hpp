// The reports of list, show and verify as JSON; docs/command-line.md describes the fields.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/collection.hpp"
#include "cli/inspection.hpp"
#include "cli/version_energy.hpp"

namespace diapause::cli {

std::string list_json(const Collection& collection, const std::vector<const Job*>& jobs);
std::string show_json(const Job& job, const VersionDetails& details,
                      const std::optional<VersionEnergy>& energy);
std::string verify_json(const Collection& collection, const std::vector<JobInspection>& jobs,
                        int exit_status);

}  // namespace diapause::cli
