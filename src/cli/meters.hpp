// The meters that the sub-verbs of `power` use.
#pragma once

#include <memory>

#include "cli/power_arguments.hpp"
#include "energy/sampler.hpp"

namespace diapause::cli {

// Returns `[energy]` of the configuration, overridden by typed values. `unless` decides which
// meters to use if the settings do not.
enum class Unless { automatic, all_meters };
Result<config::EnergySettings> meter_settings(const MeterChoice& choice, Unless unless);

// Starts the meters that these settings choose.
Result<std::unique_ptr<energy::Sampler>> start_sampler(const MeterChoice& choice, Unless unless);

}  // namespace diapause::cli
