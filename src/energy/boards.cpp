#include "energy/boards.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "energy/total.hpp"
#include "sys/text_file.hpp"
#include "sys/value_file.hpp"

namespace diapause::energy {
namespace {

constexpr const char* kDevices = "/sys/bus/pci/devices";

struct Maker {
  std::string_view name;
  std::string_view vendor;  // as the file `vendor` shows it
  std::string_view source;  // the beginning of its zones' sources
  std::string_view help;
};
constexpr Maker kMakers[] = {
    {"NVIDIA", "0x10de", "nvml ",
     "NVIDIA's driver brings libnvidia-ml.so.1, which tells; slices of a board (MIG) do not"},
    {"AMD", "0x1002", "hwmon amdgpu ", "the driver amdgpu tells in /sys/class/hwmon"},
};

// Tells display controllers (VGA, 3D, other) and processing accelerators from other devices.
bool is_board(std::string_view pci_class) {
  return pci_class.starts_with("0x0300") || pci_class.starts_with("0x0302") ||
         pci_class.starts_with("0x0380") || pci_class.starts_with("0x1200");
}

}  // namespace

std::vector<Obstacle> boards_left_out(sys::Kernel& kernel, const std::string& root,
                                      std::span<const Zone> zones) {
  const Total total = choose_total(zones);
  const bool is_modelled_node = total.kind == Kind::modelled;
  if (is_covered(total.name, Domain::gpu) && !is_modelled_node &&
      total.name.find("gpu") == std::string::npos)
    return {};
  const std::string folder = root + kDevices;
  std::vector<std::string> vendors;
  for (const std::string& device :
       sys::list_names(kernel, folder).value_or(std::vector<std::string>())) {
    const std::string at = folder + "/" + device;
    if (!is_board(sys::read_value(kernel, at + "/class").value_or(""))) continue;
    vendors.push_back(sys::read_value(kernel, at + "/vendor").value_or(""));
  }
  std::vector<Obstacle> left_out;
  for (const Maker& maker : kMakers) {
    const auto seen = std::ranges::count(vendors, maker.vendor);
    const auto told = std::ranges::count_if(zones, [&](const Zone& zone) {
      return zone.domain == Domain::gpu && zone.kind == Kind::measured &&
             (zone.source.starts_with(maker.source) || zone.source.starts_with("pm_counters "));
    });
    if (told >= seen) continue;
    left_out.push_back(
        {fmt::format("gpu boards of {}", maker.name),
         fmt::format("{} seen, of which meters tell of {}: no energy has the others; {}", seen,
                     told, maker.help)});
  }
  return left_out;
}

}  // namespace diapause::energy
