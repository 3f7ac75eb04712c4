#include "cli/meters.hpp"

#include "cli/collection.hpp"
#include "energy/meters/registry.hpp"

namespace diapause::cli {

Result<config::EnergySettings> meter_settings(const MeterChoice& choice, Unless unless) {
  DIAPAUSE_TRY_ASSIGN(const config::Settings settings, read_settings(choice.config));
  config::EnergySettings wanted = settings.energy;
  if (!choice.meters.empty()) wanted.meters = choice.meters;
  if (choice.period_ms) wanted.period_ms = *choice.period_ms;
  if (choice.profile) wanted.profile = *choice.profile;
  if (wanted.meters == std::vector<std::string>{"auto"} && unless == Unless::all_meters) {
    wanted.meters.clear();
    for (const energy::MeterEntry& entry : energy::all_meters())
      wanted.meters.emplace_back(entry.name);
  }
  return wanted;
}

Result<std::unique_ptr<energy::Sampler>> start_sampler(const MeterChoice& choice, Unless unless) {
  DIAPAUSE_TRY_ASSIGN(const config::EnergySettings settings, meter_settings(choice, unless));
  return energy::Sampler::start(settings, sys::real_kernel());
}

}  // namespace diapause::cli
