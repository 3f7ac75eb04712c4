// Lists all meters, and what they need to find their sources. A new meter is one file beside this
// one, and one line in registry.cpp.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.hpp"
#include "energy/meter.hpp"
#include "energy/profile.hpp"
#include "sys/kernel.hpp"

namespace diapause::energy {

struct Environment {
  sys::Kernel& kernel;
  const config::EnergySettings& settings;
  const Profile& profile;  // outlives the meters
  const std::atomic<std::uint64_t>&
      moved_bytes;  // bytes through memory, as far as we know them; outlives the meters
  std::string nvml_library = "libnvidia-ml.so.1";
  std::string path(std::string_view absolute) const {
    return settings.root + std::string(absolute);
  }
};

// Returns the accuracy of the counters that processors keep, however they are read.
Accuracy rapl_accuracy(Domain domain);

// `meter` is null where there is nothing to read.
struct Discovery {
  std::unique_ptr<Meter> meter;
  std::vector<Obstacle> obstacles;
};

struct MeterEntry {
  std::string_view name;
  std::string_view what;  // one line for users
  Discovery (*discover)(const Environment& environment);
};

// Where two of them tell of the same domain and part, the first one counts.
std::span<const MeterEntry> all_meters();

Discovery discover_replay(const Environment& environment);
Discovery discover_stream(const Environment& environment);
Discovery discover_pm_counters(const Environment& environment);
Discovery discover_powercap(const Environment& environment);
Discovery discover_perf(const Environment& environment);
Discovery discover_hwmon(const Environment& environment);
Discovery discover_ipmi(const Environment& environment);
Discovery discover_nvml(const Environment& environment);
Discovery discover_model(const Environment& environment);

}  // namespace diapause::energy
