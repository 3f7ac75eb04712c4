#include "cli/power_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/text.hpp"

namespace diapause::cli {
namespace {

using energy::Amount;
using energy::Zone;
using json = nlohmann::ordered_json;

std::string watts_text(const Amount& amount) {
  if (!(amount.covered_s > 0)) return "?";
  if (!amount.off.is_bounded) return "~ " + rounded_text(amount.joules / amount.covered_s, 2, "W");
  return value_text(amount.joules / amount.covered_s, amount.off.together_j() / amount.covered_s,
                    "W");
}

std::string sampling_text(const Amount& amount) {
  return amount.covered_s > 0 ? rounded_text(amount.off.sampling_j, 2, "J") : "?";
}

std::string sensor_text(const Amount& amount) {
  return amount.covered_s > 0 && amount.off.is_bounded ? rounded_text(amount.off.sensor_j, 2, "J")
                                                       : "?";
}

std::string gap_text(const Amount& amount) {
  return amount.has_gap() ? fmt::format("{:.1f} s", amount.gap_s) : "";
}

json amount_json(const Amount& amount) {
  json one = {{"joules", nullptr}, {"watts", nullptr}};
  if (amount.covered_s > 0) {
    one["joules"] = amount.joules;
    one["watts"] = amount.joules / amount.covered_s;
    const energy::Uncertainty& off = amount.off;
    one["uncertainty_j"] = off.is_bounded ? json(off.together_j()) : json(nullptr);
    one["uncertainty"] = {{"sampling_j", off.sampling_j},
                          {"sensor_j", off.is_bounded ? json(off.sensor_j) : json(nullptr)}};
  }
  one["gap_s"] = amount.gap_s;
  return one;
}

json domain_json(energy::Sampler& sampler, const PowerLook& look, std::size_t i) {
  const Zone& zone = sampler.domains()[i];
  json one = {{"domain", domain_name(zone.domain)},
              {"part", zone.part},
              {"kind", kind_name(zone)},
              {"source", zone.source},
              {"resolution_j", zone.resolution_j},
              {"accuracy", zone.accuracy.share ? json(*zone.accuracy.share) : json(nullptr)},
              {"accuracy_source", zone.accuracy.source},
              {"last", amount_json(look.usage.domains[i])},
              {"since_start", amount_json(look.since_start.domains[i])}};
  if (const std::string failure = sampler.failure(i); !failure.empty()) one["failure"] = failure;
  return one;
}

bool uses_model(energy::Sampler& sampler) {
  const auto& domains = sampler.domains();
  return std::any_of(domains.begin(), domains.end(), [](const Zone& zone) {
    return zone.kind == energy::Kind::modelled && zone.source.starts_with("model ");
  });
}

}  // namespace

std::string joules_text(const energy::Amount& amount) {
  if (!(amount.covered_s > 0)) return "?";
  return amount.off.is_bounded ? value_text(amount.joules, amount.off.together_j(), "J")
                               : "~ " + rounded_text(amount.joules, 2, "J");
}

std::string parts_text(const energy::Amount& amount) {
  return fmt::format(" (off by up to {} by sampling, {} by the sensor or model)",
                     sampling_text(amount), sensor_text(amount));
}

std::string profile_text(const energy::Profile& profile) {
  std::string text =
      fmt::format("model {}: {} ({})\n", profile.name, profile.machine, profile.origin);
  Table table({{"PARAMETER"}, {"VALUE", Align::right}, {"FROM"}});
  for (const energy::Parameter& parameter : parameters_of(profile)) {
    table.add({parameter.key, fmt::format("{:.4g}", parameter.value), printable(parameter.source)});
  }
  return text + table.text("  ");
}

std::string power_text(energy::Sampler& sampler, const PowerLook& look) {
  Table table({{"DOMAIN"},
               {"PART"},
               {"POWER", Align::right},
               {"SINCE START", Align::right},
               {"SAMPLING", Align::right},
               {"SENSOR", Align::right},
               {"GAPS", Align::right},
               {"KIND"},
               {"SOURCE"}});
  const auto& domains = sampler.domains();
  for (std::size_t i = 0; i < domains.size(); ++i) {
    const std::string failure = sampler.failure(i);
    const Amount& since_start = look.since_start.domains[i];
    table.add({std::string(domain_name(domains[i].domain)), printable(domains[i].part),
               watts_text(look.usage.domains[i]), joules_text(since_start),
               sampling_text(since_start), sensor_text(since_start), gap_text(since_start),
               std::string(kind_name(domains[i])),
               printable(domains[i].source + (failure.empty() ? "" : ": " + failure))});
  }
  std::string text = domains.empty() ? "nothing tells what this node draws\n" : table.text();
  if (const auto& total = sampler.total(); !total.zones.empty()) {
    text += fmt::format("total: {}, {}: {}, {} since the start{}\n", total.name, kind_name(total),
                        watts_text(look.usage.total), joules_text(look.since_start.total),
                        parts_text(look.since_start.total));
    if (const auto& parts = sampler.fast_parts(); !parts.zones.empty()) {
      text += fmt::format("in short times it is told apart by {}, whose meters are faster\n",
                          parts.name);
    }
  }
  if (!sampler.obstacles().empty()) text += "not usable:\n";
  for (const auto& obstacle : sampler.obstacles()) {
    text += printable(fmt::format("  {}: {}", obstacle.source, obstacle.why)) + "\n";
  }
  if (uses_model(sampler)) text += profile_text(sampler.profile());
  return text;
}

std::string power_json(energy::Sampler& sampler, const PowerLook& look) {
  json document = {{"schema", 1}, {"host", look.host}, {"seconds", look.seconds}};
  const auto& total = sampler.total();
  document["total"] = {{"name", total.name},
                       {"kind", total.zones.empty() ? json(nullptr) : json(kind_name(total))},
                       {"domains", total.zones},
                       {"told_apart_by", sampler.fast_parts().name},
                       {"last", amount_json(look.usage.total)},
                       {"since_start", amount_json(look.since_start.total)}};
  document["domains"] = json::array();
  for (std::size_t i = 0; i < sampler.domains().size(); ++i) {
    document["domains"].push_back(domain_json(sampler, look, i));
  }
  document["not_usable"] = json::array();
  for (const auto& obstacle : sampler.obstacles()) {
    document["not_usable"].push_back({{"source", obstacle.source}, {"why", obstacle.why}});
  }
  if (uses_model(sampler)) {
    const auto& profile = sampler.profile();
    json parameters = json::array();
    for (const energy::Parameter& parameter : parameters_of(profile)) {
      parameters.push_back(
          {{"key", parameter.key}, {"value", parameter.value}, {"source", parameter.source}});
    }
    document["model"] = {
        {"name", profile.name}, {"machine", profile.machine}, {"parameters", parameters}};
  }
  document["sampler_cpu_s"] = sampler.cost_s();
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace diapause::cli
