#include "energy/profile.hpp"

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

// Busy power at this clock.
double busy_w(const Profile& profile, const DomainModel& domain, double ghz) {
  if (domain.domain != Domain::package || !profile.curve || !profile.base_clock_ghz || ghz <= 0) {
    return domain.busy_w.value;
  }
  const double share = profile.curve->at(ghz) / profile.curve->at(profile.base_clock_ghz->value);
  return std::max(0.0, (domain.idle_w.value + domain.busy_w.value) * share - domain.idle_w.value);
}

}  // namespace

double PowerCurve::at(double ghz) const { return a.value * std::pow(ghz, b.value) + c.value; }

double model_watts(const Profile& profile, const DomainModel& domain, const Activity& activity) {
  return domain.idle_w.value + busy_w(profile, domain, activity.ghz) * std::clamp(activity.utilisation, 0.0, 1.0) +
         domain.j_per_gb.value * gb_s_of(domain.domain, activity);
}

}  // namespace diapause::energy
