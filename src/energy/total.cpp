#include "energy/total.hpp"

#include <algorithm>
#include <initializer_list>
#include <set>

namespace diapause::energy {
namespace {

class Choice {
 public:
  explicit Choice(std::span<const Zone> zones) : zones_(zones) {}

  // Takes the zones of that domain and kind. Returns false if there are none.
  bool take(Domain domain, Kind kind) {
    std::string_view first_meter;
    std::set<std::string> parts;
    for (std::size_t i = 0; i < zones_.size(); ++i) {
      const Zone& zone = zones_[i];
      if (zone.domain != domain || zone.kind != kind) continue;
      const std::string_view meter = std::string_view(zone.source).substr(0, zone.source.find(' '));
      if (first_meter.empty()) first_meter = meter;
      if ((domain != Domain::gpu && meter != first_meter) || !parts.insert(zone.part).second)
        continue;
      if (domain == Domain::node && parts.size() > 1) continue;
      total_.zones.push_back(i);
      if (kind == Kind::modelled) total_.kind = kind;
      total_.is_replayed = total_.is_replayed || zone.is_replayed;
    }
    if (parts.empty()) return false;
    if (!total_.name.empty()) total_.name += '+';
    total_.name += domain_name(domain);
    return true;
  }
  void take_measured(std::initializer_list<Domain> domains) {
    for (const Domain domain : domains) take(domain, Kind::measured);
  }
  // Returns false if no domain has any.
  bool take_modelled(std::initializer_list<Domain> domains) {
    bool any = false;
    for (const Domain domain : domains) any = take(domain, Kind::modelled) || any;
    return any;
  }
  Total total() { return std::move(total_); }

 private:
  std::span<const Zone> zones_;
  Total total_;
};

}  // namespace

bool is_covered(std::string_view total, Domain domain) {
  while (!total.empty()) {
    const std::string_view name = total.substr(0, total.find('+'));
    total.remove_prefix(std::min(total.size(), name.size() + 1));
    const auto is = [&](std::initializer_list<Domain> domains) {
      return std::find(domains.begin(), domains.end(), domain) != domains.end();
    };
    using enum Domain;
    if (name == domain_name(domain) || name == domain_name(node)) return true;
    if (name == domain_name(psys) && is({socket, package, core, uncore, dram, other})) return true;
    if (name == domain_name(module) && is({socket, package, core, uncore, dram, gpu})) return true;
    if (name == domain_name(socket) && is({package, core, uncore, dram})) return true;
    if (name == domain_name(package) && is({core, uncore})) return true;
  }
  return false;
}

Total choose_fast_parts(std::span<const Zone> zones, const Total& total) {
  constexpr double kSlowS = 0.5;
  constexpr double kFaster = 5;
  if (total.name != domain_name(Domain::node) || total.kind != Kind::measured) return {};
  const double update_s = zones[total.zones.front()].update_s;
  if (update_s < kSlowS) return {};
  std::vector<Zone> fast;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < zones.size(); ++i) {
    const Zone& zone = zones[i];
    if (zone.domain == Domain::node || zone.kind != Kind::measured ||
        kFaster * zone.update_s > update_s)
      continue;
    fast.push_back(zone);
    places.push_back(i);
  }
  Total parts = choose_total(fast);
  for (std::size_t& zone : parts.zones) zone = places[zone];
  return parts;
}

Total choose_total(std::span<const Zone> zones) {
  Choice choice(zones);
  if (choice.take(Domain::node, Kind::measured)) return choice.total();
  if (choice.take(Domain::module, Kind::measured)) {
    choice.take_measured({Domain::disk, Domain::network});
  } else if (choice.take(Domain::psys, Kind::measured) ||
             choice.take(Domain::socket, Kind::measured)) {
    choice.take_measured({Domain::gpu, Domain::disk, Domain::network});
  } else if (choice.take(Domain::package, Kind::measured)) {
    choice.take_measured({Domain::dram, Domain::gpu, Domain::disk, Domain::network});
  } else if (choice.take(Domain::node, Kind::modelled) ||
             choice.take_modelled({Domain::package, Domain::dram, Domain::disk, Domain::network})) {
    choice.take_measured({Domain::gpu});
  } else {
    choice.take_measured({Domain::dram, Domain::gpu, Domain::disk, Domain::network});
  }
  return choice.total();
}

}  // namespace diapause::energy
