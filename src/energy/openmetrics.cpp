#include "energy/openmetrics.hpp"

#include <fmt/core.h>

#include <optional>

namespace diapause::energy {
namespace {

// Labels are in double quotes, and UTF-8. Those of sensors may hold any bytes. Bytes that are not
// printable ASCII, and '%', become '%' and two digits, so that no two labels become the same.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c < ' ' || c > '~' || c == '%') {
      result += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
  }
  return result;
}

std::string labels_of(const Zone& zone) {
  return fmt::format(R"({{source="{}",domain="{}",part="{}",kind="{}"}})", escaped(zone.source),
                     domain_name(zone.domain), escaped(zone.part), kind_name(zone));
}

struct Family {
  const char* name;
  const char* type;
  const char* suffix;
  const char* unit;
  const char* help;
  std::optional<double> (*value)(const Amount&);
};
constexpr Family kFamilies[] = {
    {"diapause_energy_joules", "counter", "_total", "joules",
     "Energy used since the meters were started.",
     [](const Amount& amount) { return std::optional(amount.joules); }},
    {"diapause_energy_uncertainty_joules", "gauge", "", "joules",
     "How far the energy may be off, either way; not there where nobody knows.",
     [](const Amount& amount) {
       return amount.off.is_bounded ? std::optional(amount.off.together_j()) : std::nullopt;
     }},
    {"diapause_energy_uncertainty_sampling_joules", "gauge", "", "joules",
     "The part of the uncertainty that comes from the time between samples.",
     [](const Amount& amount) { return std::optional(amount.off.sampling_j); }},
    {"diapause_energy_uncertainty_sensor_joules", "gauge", "", "joules",
     "The part of the uncertainty by which the source itself may be off; not there where nobody "
     "knows.",
     [](const Amount& amount) {
       return amount.off.is_bounded ? std::optional(amount.off.sensor_j) : std::nullopt;
     }},
    {"diapause_energy_covered_seconds", "counter", "_total", "seconds",
     "Time that the energy stands for.",
     [](const Amount& amount) { return std::optional(amount.covered_s); }},
    // A counter that stood still for a while may turn out to have counted, so this is a gauge and
    // no counter.
    {"diapause_energy_gap_seconds", "gauge", "", "seconds",
     "Time since the start of which the source knows nothing.",
     [](const Amount& amount) { return std::optional(amount.gap_s); }}};

}  // namespace

std::string openmetrics_text(std::span<const Zone> domains, std::span<const Amount> amounts) {
  std::string text;
  for (const Family& family : kFamilies) {
    text += fmt::format("# TYPE {0} {1}\n# UNIT {0} {2}\n# HELP {0} {3}\n", family.name,
                        family.type, family.unit, family.help);
    for (std::size_t i = 0; i < domains.size(); ++i) {
      const auto value = family.value(amounts[i]);
      if (amounts[i].covered_s <= 0 || !value) continue;
      text +=
          fmt::format("{}{}{} {:.6f}\n", family.name, family.suffix, labels_of(domains[i]), *value);
    }
  }
  return text + "# EOF\n";
}

}  // namespace diapause::energy
