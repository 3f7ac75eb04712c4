// Reads the energy that a blade of Cray or HPE measures for the node and its parts, in
// /sys/cray/pm_counters, which everybody may read. The files hold a number, a unit and a time:
// "6954361 J 1644940393293043 us".
#include <algorithm>

#include "energy/meters/number_files.hpp"

namespace diapause::energy {
namespace {

constexpr const char* kPmCountersFolder = "/sys/cray/pm_counters";
constexpr double kUsualScanHz = 10;

std::vector<NumberFile> search(sys::Kernel& kernel, const std::string& folder) {
  constexpr std::string_view kEnd = "_energy";
  const auto names = sys::list_names(kernel, folder).value_or(std::vector<std::string>());
  const auto scan_hz = sys::read_number(kernel, folder + "/raw_scan_hz");
  std::vector<NumberFile> found;
  const auto add = [&](const std::string& name, Domain domain, const std::string& part) {
    NumberFile file;
    file.path = folder + "/" + name;
    file.zone.source = "pm_counters " + name;
    file.zone.domain = domain;
    file.zone.part = part;
    file.zone.unit = 1;
    file.zone.resolution_j = 1;
    file.zone.update_s = 1 / std::max(1.0, scan_hz ? static_cast<double>(*scan_hz) : kUsualScanHz);
    found.push_back(std::move(file));
  };
  for (const std::string& name : names) {
    if (name == "energy") add(name, Domain::node, "");
    if (!name.ends_with(kEnd)) continue;
    const std::string what = name.substr(0, name.size() - kEnd.size());
    if (what == "cpu") add(name, Domain::package, "");
    if (what == "memory") add(name, Domain::dram, "");
    if (what.starts_with("accel")) add(name, Domain::gpu, what);
  }
  return found;
}

}  // namespace

Discovery discover_pm_counters(const Environment& environment) {
  return NumberFiles::open(
      "pm_counters", environment,
      [&kernel = environment.kernel, folder = environment.path(kPmCountersFolder)] {
        return search(kernel, folder);
      },
      "Cray systems let everybody read it: ask the site");
}

}  // namespace diapause::energy
