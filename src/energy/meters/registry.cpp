#include "energy/meters/registry.hpp"

#include <array>

namespace diapause::energy {

std::span<const MeterEntry> all_meters() {
  static constexpr std::array kMeters = {
      MeterEntry{"powercap", "RAPL counters of Intel and AMD processors", discover_powercap},
      MeterEntry{"model", "power modelled from what the node does, by a profile of the machine", discover_model},
  };
  return kMeters;
}

}  // namespace diapause::energy
