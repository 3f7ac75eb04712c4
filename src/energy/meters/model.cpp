// Power from a profile of the machine and from what the node does. One zone for each domain of the profile, and the
// node as their sum.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "energy/activity.hpp"
#include "energy/meters/registry.hpp"

namespace diapause::energy {
namespace {

// The kernel counts processor time in steps of 10 ms: over less than this, utilisation would be a matter of chance.
constexpr double kLookS = 0.05;

class Model final : public Meter {
 public:
  Model(const Profile& profile, ActivityReader activity) : profile_(profile), activity_(std::move(activity)) {
    add_zone(Domain::node);
    for (const DomainModel& domain : profile.domains) add_zone(domain.domain);
    watts_.resize(zones_.size());
    confirmed_j_.resize(zones_.size());
    told_uj_.resize(zones_.size());
  }

  std::string_view name() const override { return "model"; }
  const std::vector<Zone>& zones() const override { return zones_; }

  // Since the last look at the node, power is taken to be what it was; the next look puts that right, but never takes
  // back what was told.
  void read(double now_s, std::vector<Reading>& out) override {
    if (!has_begun_) begin(now_s);
    const double dt_s = now_s - looked_s_;
    const bool looks = dt_s >= kLookS;
    if (looks) {
      auto activity = activity_.since_last(now_s);
      if (!activity) {
        for (std::size_t i = 0; i < zones_.size(); ++i) out.push_back({i, now_s, fail(activity.error())});
        return;
      }
      set_watts(*activity);
    }
    for (std::size_t i = 0; i < zones_.size(); ++i) {
      const double joules = confirmed_j_[i] + watts_[i] * dt_s;
      told_uj_[i] = std::max(told_uj_[i], static_cast<std::uint64_t>(joules * 1e6));
      out.push_back({i, now_s, told_uj_[i]});
      if (looks) confirmed_j_[i] = joules;
    }
    if (looks) looked_s_ = now_s;
  }

 private:
  void add_zone(Domain domain) {
    Zone zone;
    zone.source = "model " + profile_.name;
    zone.domain = domain;
    zone.kind = Kind::modelled;
    zone.resolution_j = zone.unit;
    zone.update_s = kLookS;
    zones_.push_back(std::move(zone));
  }

  // Counts from 1: a counter at 0 is taken for one that cannot be read.
  void begin(double now_s) {
    has_begun_ = true;
    looked_s_ = now_s;
    std::fill(told_uj_.begin(), told_uj_.end(), 1);
    (void)activity_.since_last(now_s);
    set_watts({});
  }

  void set_watts(const Activity& activity) {
    watts_[0] = 0;
    for (std::size_t i = 0; i < profile_.domains.size(); ++i) {
      watts_[i + 1] = model_watts(profile_, profile_.domains[i], activity);
      watts_[0] += watts_[i + 1];
    }
  }

  const Profile& profile_;
  ActivityReader activity_;
  std::vector<Zone> zones_;  // the node, then the domains of the profile in their order
  bool has_begun_ = false;
  double looked_s_ = 0;
  std::vector<double> watts_;
  std::vector<double> confirmed_j_;  // until looked_s_
  std::vector<std::uint64_t> told_uj_;
};

}  // namespace

Discovery discover_model(const Surroundings& surroundings) {
  auto activity = ActivityReader::open(surroundings.kernel, surroundings.settings.root, surroundings.moved_bytes);
  if (!activity) return {nullptr, {{"model", activity.error().message}}};
  return {std::make_unique<Model>(surroundings.profile, std::move(*activity)), {}};
}

}  // namespace diapause::energy
