// Reads profiles from TOML. Each number is a table { value = 1.5, source = "..." }, so that none
// lacks a source.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>

#include "energy/built_in_profiles.hpp"
#include "energy/profile.hpp"

namespace diapause::energy {
namespace {

class ProfileReader {
 public:
  ProfileReader(const std::string& origin, const MachineFacts& facts)
      : origin_(origin), facts_(facts) {
    profile_.origin = origin;
  }

  Result<Profile> read(const toml::table& file) {
    DIAPAUSE_TRY(known(file, "the file",
                       {"name", "machine", "clock", "tdp", "error", "domain", "frequency", "phase",
                        "rate", "app"}));
    DIAPAUSE_TRY_ASSIGN(profile_.name, text(file, "name"));
    DIAPAUSE_TRY_ASSIGN(profile_.machine, text(file, "machine"));
    DIAPAUSE_TRY(read_clock(section(file, "clock")));
    DIAPAUSE_TRY(read_tdp(section(file, "tdp")));
    DIAPAUSE_TRY(read_error(section(file, "error")));
    DIAPAUSE_TRY(read_domains(file));
    if (const auto* frequency = section(file, "frequency")) {
      DIAPAUSE_TRY_ASSIGN(profile_.curve, curve(*frequency, "frequency"));
    }
    DIAPAUSE_TRY(read_phases(file));
    DIAPAUSE_TRY(read_rates(section(file, "rate")));
    return std::move(profile_);
  }

 private:
  using Names = std::initializer_list<std::string_view>;

  tl::unexpected<Error> wrong(const toml::node& at, const std::string& what) const {
    return fail(Code::config, fmt::format("{}:{}: {}", origin_, at.source().begin.line, what));
  }

  static const toml::table* section(const toml::table& table, std::string_view name) {
    return table[name].as_table();
  }

  Status known(const toml::table& table, const std::string& where, Names names) const {
    for (const auto& [key, node] : table) {
      if (std::find(names.begin(), names.end(), key.str()) != names.end()) continue;
      return wrong(node, fmt::format("{} has no key '{}'; it has {}", where, key.str(),
                                     fmt::join(names, ", ")));
    }
    return {};
  }

  Result<std::string> text(const toml::table& table, std::string_view name) const {
    if (const auto value = table[name].value<std::string>(); value && !value->empty())
      return *value;
    return wrong(table, fmt::format("'{}' is missing: a text", name));
  }

  // A number is { value = 1.5, source = "..." }.
  Result<Number> number(const toml::node& node, const std::string& key) const {
    const auto* table = node.as_table();
    if (table == nullptr) {
      return wrong(node,
                   fmt::format("{}: write {{ value = 1.5, source = \"where it is from\" }}", key));
    }
    DIAPAUSE_TRY(known(*table, key, {"value", "source"}));
    const auto value = (*table)["value"].value<double>();
    const auto source = (*table)["source"].value<std::string>();
    if (!value || !std::isfinite(*value))
      return wrong(node, key + ": 'value' is missing: a number");
    if (!source || source->empty()) {
      return wrong(node,
                   key + ": 'source' is missing: where the number is from, or \"assumed: why\"");
    }
    return Number{*value, *source};
  }

  Result<std::optional<Number>> optional_number(const toml::table* table, const char* section_name,
                                                std::string_view name) const {
    if (table == nullptr || !table->contains(name)) return std::optional<Number>();
    DIAPAUSE_TRY_ASSIGN(const Number found,
                        number(*table->get(name), fmt::format("{}.{}", section_name, name)));
    if (found.value < 0)
      return wrong(*table->get(name), fmt::format("{}.{} is below 0", section_name, name));
    return std::optional(found);
  }

  Status read_clock(const toml::table* clock) {
    if (clock == nullptr) return {};
    DIAPAUSE_TRY(known(*clock, "clock", {"base_ghz", "least_ghz"}));
    DIAPAUSE_TRY_ASSIGN(profile_.base_clock_ghz, optional_number(clock, "clock", "base_ghz"));
    DIAPAUSE_TRY_ASSIGN(profile_.least_clock_ghz, optional_number(clock, "clock", "least_ghz"));
    return {};
  }

  Status read_tdp(const toml::table* tdp) {
    if (facts_.tdp_w > 0)
      profile_.tdp_w = Number{facts_.tdp_w, "energy.tdp_w of the configuration"};
    if (tdp == nullptr) return {};
    DIAPAUSE_TRY(known(*tdp, "tdp", {"w", "w_per_cpu"}));
    DIAPAUSE_TRY_ASSIGN(const auto whole, optional_number(tdp, "tdp", "w"));
    DIAPAUSE_TRY_ASSIGN(const auto per_cpu, optional_number(tdp, "tdp", "w_per_cpu"));
    if (profile_.tdp_w) return {};
    if (whole) profile_.tdp_w = whole;
    if (per_cpu) {
      profile_.tdp_w = Number{per_cpu->value * facts_.cpus,
                              fmt::format("{} W for each of {} processors; {}", per_cpu->value,
                                          facts_.cpus, per_cpu->source)};
    }
    return {};
  }

  // A profile that guesses the TDP is further off where nobody has given it.
  Status read_error(const toml::table* error) {
    if (error == nullptr) return {};
    DIAPAUSE_TRY(known(*error, "error", {"share", "share_with_tdp"}));
    DIAPAUSE_TRY_ASSIGN(profile_.error, optional_number(error, "error", "share"));
    DIAPAUSE_TRY_ASSIGN(const auto with_tdp, optional_number(error, "error", "share_with_tdp"));
    if (with_tdp && facts_.tdp_w > 0) profile_.error = with_tdp;
    return {};
  }

  // Reads `<name>_w`, or `<name>_per_tdp` as a share of the TDP. The result is 0 where neither is
  // given.
  Result<Number> watts(const toml::table& table, const std::string& where,
                       const std::string& name) const {
    DIAPAUSE_TRY_ASSIGN(const auto absolute, optional_number(&table, where.c_str(), name + "_w"));
    if (absolute) return *absolute;
    DIAPAUSE_TRY_ASSIGN(const auto share,
                        optional_number(&table, where.c_str(), name + "_per_tdp"));
    if (!share) return Number{0, "not given"};
    if (!profile_.tdp_w)
      return wrong(table, where + ": a share of the TDP needs [tdp] w, or energy.tdp_w");
    return Number{share->value * profile_.tdp_w->value,
                  fmt::format("{} of the TDP of {} W ({}); {}", share->value, profile_.tdp_w->value,
                              profile_.tdp_w->source, share->source)};
  }

  Status read_domains(const toml::table& file) {
    const auto* domains = section(file, "domain");
    if (domains == nullptr) return wrong(file, "there is no [domain.<name>]");
    for (const auto& [name, node] : *domains) {
      const std::string where = fmt::format("domain.{}", name.str());
      const auto found = std::find(kDomainNames.begin(), kDomainNames.end(), name.str());
      const auto* table = node.as_table();
      if (found == kDomainNames.end() || found == kDomainNames.begin() || table == nullptr) {
        return wrong(node,
                     fmt::format("{}: domains are {}; the node is their sum", where,
                                 fmt::join(kDomainNames.begin() + 1, kDomainNames.end(), ", ")));
      }
      DIAPAUSE_TRY(
          known(*table, where, {"idle_w", "idle_per_tdp", "busy_w", "busy_per_tdp", "j_per_gb"}));
      DomainModel model;
      model.domain = static_cast<Domain>(found - kDomainNames.begin());
      DIAPAUSE_TRY_ASSIGN(model.idle_w, watts(*table, where, "idle"));
      DIAPAUSE_TRY_ASSIGN(model.busy_w, watts(*table, where, "busy"));
      DIAPAUSE_TRY_ASSIGN(const auto j_per_gb, optional_number(table, where.c_str(), "j_per_gb"));
      model.j_per_gb = j_per_gb.value_or(Number{0, "not given"});
      profile_.domains.push_back(model);
    }
    return {};
  }

  Result<PowerCurve> curve(const toml::table& table, const std::string& where) const {
    DIAPAUSE_TRY(known(table, where, {"a", "b", "c"}));
    PowerCurve curve;
    for (const auto& [name, place] :
         {std::pair("a", &curve.a), std::pair("b", &curve.b), std::pair("c", &curve.c)}) {
      if (!table.contains(name))
        return wrong(table, fmt::format("{}: '{}' is missing", where, name));
      DIAPAUSE_TRY_ASSIGN(*place, number(*table.get(name), where + "." + name));
    }
    const double ghz = profile_.base_clock_ghz ? profile_.base_clock_ghz->value : 0;
    if (ghz <= 0) return wrong(table, where + ": a curve needs clock.base_ghz");
    if (!(curve.at(ghz) > 0))
      return wrong(table, fmt::format("{}: no power at the base clock of {} GHz", where, ghz));
    return curve;
  }

  Status read_phases(const toml::table& file) {
    const auto* phases = section(file, "phase");
    if (phases == nullptr) return {};
    for (const auto& [name, node] : *phases) {
      const std::string where = fmt::format("phase.{}", name.str());
      if (!node.is_table()) return wrong(node, where + " is no table");
      DIAPAUSE_TRY_ASSIGN(profile_.phases[std::string(name.str())], curve(*node.as_table(), where));
    }
    return {};
  }

  Status read_rates(const toml::table* rates) {
    if (rates == nullptr) return {};
    DIAPAUSE_TRY(
        known(*rates, "rate", {"storage_write_mb_s", "storage_read_mb_s", "network_mb_s"}));
    for (const auto& [name, node] : *rates) {
      DIAPAUSE_TRY_ASSIGN(profile_.rates[std::string(name.str())],
                          number(node, fmt::format("rate.{}", name.str())));
    }
    return {};
  }

  const std::string& origin_;
  const MachineFacts& facts_;
  Profile profile_;
};

}  // namespace

std::vector<std::string_view> built_in_profiles() {
  std::vector<std::string_view> names;
  for (const auto& [name, text] : kBuiltInProfiles) names.push_back(name);
  return names;
}

std::string_view built_in_profile(std::string_view name) {
  for (const auto& [known, text] : kBuiltInProfiles) {
    if (known == name) return text;
  }
  return {};
}

Result<Profile> parse_profile(std::string_view text, const std::string& origin,
                              const MachineFacts& facts) {
  // The packaged library reports by exception; no other can leave it but one for memory.
  try {
    return ProfileReader(origin, facts).read(toml::parse(text, origin));
  } catch (const toml::parse_error& error) {
    return fail(Code::config, fmt::format("{}:{}: not valid TOML: {}", origin,
                                          error.source().begin.line, error.description()));
  }
}

}  // namespace diapause::energy
