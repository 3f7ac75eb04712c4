// Computes power from a profile of the machine and from what the node does. There is one zone for
// each domain of the profile. If the profile has the rest of the node too, the node is a zone as
// well, as their sum.
#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "energy/activity.hpp"
#include "energy/meters/registry.hpp"
#include "sys/value_file.hpp"

namespace diapause::energy {
namespace {

// A look at the node costs more than everything else that a sampler does, so at 10 Hz each third
// sample has one. The first look comes sooner, and so does one that is asked for. Less than this
// would be a matter of chance, because the kernel counts processor time in steps of 10 ms.
constexpr double kLookS = 0.25;
constexpr double kLeastLookS = 0.03;

class Model final : public Meter {
 public:
  Model(const Profile& profile, Accuracy accuracy, ActivityReader activity)
      : profile_(profile), accuracy_(std::move(accuracy)), activity_(std::move(activity)) {
    if (has_node(profile)) add_zone(Domain::node);
    for (const DomainModel& domain : profile.domains) add_zone(domain.domain);
    watts_.resize(zones_.size());
    confirmed_j_.resize(zones_.size());
    told_uj_.resize(zones_.size());
  }

  std::string_view name() const override { return "model"; }
  const std::vector<Zone>& zones() const override { return zones_; }

  void read(double now_s, std::vector<Reading>& out) override {
    if (!has_begun_) return begin(now_s, out);
    if (now_s - looked_s_ >= (has_looked_ ? kLookS : kLeastLookS)) look(now_s, out);
  }

  // Too soon after a look at the node, power is taken to be what it was. The next look corrects
  // that, but never takes back what was told. Before the first look nothing is told.
  void read_well(double now_s, std::vector<Reading>& out) override {
    if (!has_begun_) return begin(now_s, out);
    if (now_s - looked_s_ >= kLeastLookS) {
      look(now_s, out);
    } else if (has_looked_) {
      tell(now_s, out);
    }
  }

 private:
  static bool has_node(const Profile& profile) {
    return std::ranges::any_of(profile.domains,
                               [](const DomainModel& one) { return one.domain == Domain::other; });
  }

  void add_zone(Domain domain) {
    Zone zone;
    zone.source = "model " + profile_.name;
    zone.domain = domain;
    zone.kind = Kind::modelled;
    zone.resolution_j = zone.unit;
    zone.update_s = kLookS;
    zone.accuracy = accuracy_;
    zones_.push_back(std::move(zone));
  }

  // Values begin at 1, because a counter at 0 is taken for one that cannot be read.
  void begin(double now_s, std::vector<Reading>& out) {
    has_begun_ = true;
    looked_s_ = now_s;
    std::fill(told_uj_.begin(), told_uj_.end(), 1);
    const auto activity = activity_.since_last(now_s);
    for (std::size_t i = 0; i < zones_.size(); ++i) {
      out.push_back(
          {i, now_s, activity ? Result<std::uint64_t>(told_uj_[i]) : fail(activity.error())});
    }
  }

  void look(double now_s, std::vector<Reading>& out) {
    const auto activity = activity_.since_last(now_s);
    if (!activity) {
      for (std::size_t i = 0; i < zones_.size(); ++i)
        out.push_back({i, now_s, fail(activity.error())});
      return;
    }
    set_watts(*activity);
    tell(now_s, out);
    for (std::size_t i = 0; i < zones_.size(); ++i)
      confirmed_j_[i] += watts_[i] * (now_s - looked_s_);
    looked_s_ = now_s;
    has_looked_ = true;
  }

  void tell(double now_s, std::vector<Reading>& out) {
    for (std::size_t i = 0; i < zones_.size(); ++i) {
      const double joules = confirmed_j_[i] + watts_[i] * (now_s - looked_s_);
      told_uj_[i] = std::max(told_uj_[i], static_cast<std::uint64_t>(joules * 1e6));
      out.push_back({i, now_s, told_uj_[i]});
    }
  }

  void set_watts(const Activity& activity) {
    const std::size_t first = zones_.size() - profile_.domains.size();
    double sum_w = 0;
    for (std::size_t i = 0; i < profile_.domains.size(); ++i) {
      watts_[first + i] = model_watts(profile_, profile_.domains[i], activity);
      sum_w += watts_[first + i];
    }
    if (first > 0) watts_[0] = sum_w;
  }

  const Profile& profile_;
  const Accuracy accuracy_;
  ActivityReader activity_;
  std::vector<Zone> zones_;  // the node, if the profile has all of it, then the domains of the
                             // profile in their order
  bool has_begun_ = false;
  bool has_looked_ = false;
  double looked_s_ = 0;
  std::vector<double> watts_;
  std::vector<double> confirmed_j_;  // joules up to looked_s_
  std::vector<std::uint64_t> told_uj_;
};

// All processors have the same flags, so that the first ones tell. The file has no size of its own.
bool is_virtual_machine(sys::Kernel& kernel, const std::string& cpuinfo) {
  constexpr std::size_t kFirstProcessors = 64 << 10;
  const auto file = sys::ValueFile::open(kernel, cpuinfo);
  const auto text = file ? file->text(kFirstProcessors) : tl::unexpected(file.error());
  if (!text) return false;
  const std::size_t flags = text->find("\nflags");
  if (flags == std::string::npos) return false;
  const std::size_t end = std::min(text->find('\n', flags + 1), text->size());
  return text->substr(flags, end - flags).find(" hypervisor") != std::string::npos;
}

// The host of a virtual machine is not known here, so the guess of a profile for any machine has no
// bound.
Accuracy accuracy_of(const Environment& environment) {
  const Profile& profile = environment.profile;
  if (!profile.error) return {std::nullopt, "the profile does not say how far it is off"};
  const bool is_guess = profile.name == "generic" && environment.settings.tdp_w <= 0;
  if (is_guess && is_virtual_machine(environment.kernel, environment.path("/proc/cpuinfo"))) {
    return {std::nullopt, "this is a virtual machine, and nothing is known about its host"};
  }
  return {profile.error->value, profile.error->source};
}

}  // namespace

Discovery discover_model(const Environment& environment) {
  auto activity =
      ActivityReader::open(environment.kernel, environment.settings.root, environment.moved_bytes);
  if (!activity) return {nullptr, {{"model", activity.error().message}}};
  return {
      std::make_unique<Model>(environment.profile, accuracy_of(environment), std::move(*activity)),
      {}};
}

}  // namespace diapause::energy
