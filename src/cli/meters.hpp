// The meters that the sub-verbs of `power` ask.
#pragma once

#include <memory>

#include "cli/power_arguments.hpp"
#include "energy/sampler.hpp"

namespace diapause::cli {

// `[energy]` of the configuration with what was typed over it. Where it leaves the choice of meters to us: `unless`.
enum class Unless { automatic, all_meters };
Result<config::EnergySettings> meter_settings(const MeterChoice& choice, Unless unless);

// The meters that these settings mean.
Result<std::unique_ptr<energy::Sampler>> start_sampler(const MeterChoice& choice, Unless unless);

}  // namespace diapause::cli
