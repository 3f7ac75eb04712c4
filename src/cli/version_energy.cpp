#include "cli/version_energy.hpp"

#include <fmt/format.h>

#include <string_view>

#include "cli/ledgers.hpp"

namespace diapause::cli {

std::optional<VersionEnergy> energy_of_version(const std::string& job, std::uint64_t version,
                                               const Places& places) {
  const auto path = ledger_of(job, places);
  if (!path) return std::nullopt;
  EnergyReader reader;
  const auto read = read_ledger(*path, [&](std::string_view line) { reader.add_line(line); });
  const EnergySummary energy = reader.take();
  if (!read || energy.other_schema) return std::nullopt;
  Amount sum;
  for (const auto& [key, amount] : energy.phases) {
    if (key.version == version && !key.of_restart) sum.add(amount);
  }
  if (sum.joules.known == 0) return std::nullopt;
  return VersionEnergy{sum, energy.kind(), energy.total,
                       fmt::format("{}", fmt::join(energy.total_sources(), "; "))};
}

}  // namespace diapause::cli
