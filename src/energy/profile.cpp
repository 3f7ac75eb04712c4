#include "energy/profile.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace diapause::energy {
namespace {

double gb_s_of(Domain domain, const Activity& activity) {
  switch (domain) {
    case Domain::dram:
      return activity.memory_gb_s;
    case Domain::disk:
      return activity.disk_gb_s;
    case Domain::network:
      return activity.network_gb_s;
    default:
      return 0;
  }
}

// Returns the busy power at this clock.
double busy_w(const Profile& profile, const DomainModel& domain, double ghz) {
  if (domain.domain != Domain::package || !profile.curve || !profile.base_clock_ghz || ghz <= 0) {
    return domain.busy_w.value;
  }
  const double share = profile.curve->at(ghz) / profile.curve->at(profile.base_clock_ghz->value);
  return std::max(0.0, (domain.idle_w.value + domain.busy_w.value) * share - domain.idle_w.value);
}

// Returns a text as TOML writes it.
std::string in_quotes(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c >= ' ' || c < 0 ? c : ' ';
  }
  return result + "\"";
}

}  // namespace

double PowerCurve::at(double ghz) const { return a.value * std::pow(ghz, b.value) + c.value; }

double model_watts(const Profile& profile, const DomainModel& domain, const Activity& activity) {
  return domain.idle_w.value +
         busy_w(profile, domain, activity.ghz) * std::clamp(activity.utilisation, 0.0, 1.0) +
         domain.j_per_gb.value * gb_s_of(domain.domain, activity);
}

std::vector<Parameter> parameters_of(const Profile& profile) {
  std::vector<Parameter> parameters;
  const auto add = [&](const std::string& key, const Number& number) {
    parameters.push_back({key, number.value, number.source});
  };
  const auto add_curve = [&](const std::string& section, const PowerCurve& curve) {
    add(section + ".a", curve.a);
    add(section + ".b", curve.b);
    add(section + ".c", curve.c);
  };
  if (profile.base_clock_ghz) add("clock.base_ghz", *profile.base_clock_ghz);
  if (profile.least_clock_ghz) add("clock.least_ghz", *profile.least_clock_ghz);
  if (profile.tdp_w) add("tdp.w", *profile.tdp_w);
  if (profile.error) add("error.share", *profile.error);
  for (const DomainModel& domain : profile.domains) {
    const std::string section = fmt::format("domain.{}", domain_name(domain.domain));
    add(section + ".idle_w", domain.idle_w);
    add(section + ".busy_w", domain.busy_w);
    if (domain.j_per_gb.value > 0) add(section + ".j_per_gb", domain.j_per_gb);
  }
  if (profile.curve) add_curve("frequency", *profile.curve);
  for (const auto& [name, curve] : profile.phases) add_curve("phase." + name, curve);
  for (const auto& [name, rate] : profile.rates) add("rate." + name, rate);
  return parameters;
}

std::string profile_toml(const Profile& profile) {
  std::string text =
      fmt::format("name = {}\nmachine = {}\n", in_quotes(profile.name), in_quotes(profile.machine));
  std::string section;
  for (const Parameter& parameter : parameters_of(profile)) {
    const std::size_t dot = parameter.key.rfind('.');
    if (parameter.key.substr(0, dot) != section) {
      section = parameter.key.substr(0, dot);
      text += fmt::format("\n[{}]\n", section);
    }
    text += fmt::format("{} = {{ value = {}, source = {} }}\n", parameter.key.substr(dot + 1),
                        parameter.value, in_quotes(parameter.source));
  }
  return text;
}

}  // namespace diapause::energy
