#include "energy/meters/registry.hpp"

#include <array>

namespace diapause::energy {

Accuracy rapl_accuracy(Domain domain) {
  constexpr const char* kMemory =
      "assumed; Desrochers, Paradis, Weaver (2016) find the trend right, and an offset that is "
      "largest when idle";
  constexpr const char* kProcessor =
      "assumed; comparisons with instrumented boards find offsets of a few percent";
  if (domain == Domain::dram) return {0.2, kMemory};
  return {domain == Domain::package ? 0.05 : 0.1, kProcessor};
}

std::span<const MeterEntry> all_meters() {
  static constexpr std::array kMeters = {
      MeterEntry{"replay", "a trace that was recorded earlier (energy.trace)", discover_replay},
      MeterEntry{"stream", "a CSV file that an external meter writes (energy.stream)",
                 discover_stream},
      MeterEntry{"pm_counters", "Cray and HPE blades", discover_pm_counters},
      MeterEntry{"powercap", "RAPL counters of Intel and AMD processors", discover_powercap},
      MeterEntry{"perf", "the same as performance counters: power/energy-*", discover_perf},
      MeterEntry{"hwmon",
                 "counters of AMD sockets, rails of Grace, power meters of ACPI, rails of boards",
                 discover_hwmon},
      MeterEntry{"ipmi", "the node's management controller: DCMI power readings", discover_ipmi},
      MeterEntry{"nvml", "NVIDIA boards", discover_nvml},
      MeterEntry{"model", "power modelled from what the node does, by a profile of the machine",
                 discover_model},
  };
  return kMeters;
}

}  // namespace diapause::energy
