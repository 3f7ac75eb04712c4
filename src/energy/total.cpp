#include "energy/total.hpp"

#include <algorithm>
#include <initializer_list>
#include <set>

namespace diapause::energy {
namespace {

class Choice {
 public:
  explicit Choice(std::span<const Zone> zones) : zones_(zones) {}

  // Takes the zones of that domain and kind; false if there are none.
  bool take(Domain domain, Kind kind) {
    std::string_view first_meter;
    std::set<std::string> parts;
    for (std::size_t i = 0; i < zones_.size(); ++i) {
      const Zone& zone = zones_[i];
      if (zone.domain != domain || zone.kind != kind) continue;
      const std::string_view meter = std::string_view(zone.source).substr(0, zone.source.find(' '));
      if (first_meter.empty()) first_meter = meter;
      if ((domain != Domain::gpu && meter != first_meter) || !parts.insert(zone.part).second) continue;
      total_.zones.push_back(i);
      if (kind == Kind::modelled) total_.kind = kind;
    }
    if (parts.empty()) return false;
    if (!total_.name.empty()) total_.name += '+';
    total_.name += domain_name(domain);
    return true;
  }
  void take_measured(std::initializer_list<Domain> domains) {
    for (const Domain domain : domains) take(domain, Kind::measured);
  }
  Total total() { return std::move(total_); }

 private:
  std::span<const Zone> zones_;
  Total total_;
};

}  // namespace

Total choose_total(std::span<const Zone> zones) {
  Choice choice(zones);
  if (choice.take(Domain::node, Kind::measured)) return choice.total();
  if (choice.take(Domain::module, Kind::measured)) {
    choice.take_measured({Domain::disk, Domain::network});
  } else if (choice.take(Domain::psys, Kind::measured) || choice.take(Domain::socket, Kind::measured)) {
    choice.take_measured({Domain::gpu, Domain::disk, Domain::network});
  } else if (choice.take(Domain::package, Kind::measured)) {
    choice.take_measured({Domain::dram, Domain::gpu, Domain::disk, Domain::network});
  } else if (choice.take(Domain::node, Kind::modelled)) {
    choice.take_measured({Domain::gpu});
  }
  return choice.total();
}

}  // namespace diapause::energy
