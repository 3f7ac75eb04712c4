#include "engine/accounting/governing.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "sys/process.hpp"

namespace diapause::engine {
namespace {

governor::Environment environment_of(const Context& context) {
  governor::Environment environment;
  environment.kernel = &sys::real_kernel();  // the real machine's, wherever checkpoints are stored
  environment.sysfs = context.settings.energy.root + "/sys";
  environment.log = context.log;
  std::set<std::uint32_t> cpus;
  for (const Neighbour& neighbour : context.neighbours) {
    environment.processes.push_back(neighbour.process);
    cpus.insert(neighbour.cpus.begin(), neighbour.cpus.end());
  }
  environment.cpus.assign(cpus.begin(), cpus.end());
  return environment;
}

// Returns the policy of this process. If every rank acts for itself, one of them governs for its
// node.
config::ThrottlePolicy policy_of(const Context& context) {
  const bool governs = context.topology.by_node || context.topology.is_leader();
  return governs ? context.settings.governor.policy : config::ThrottlePolicy::off;
}

double busy_watts(const energy::DomainModel& domain, double share) {
  return domain.idle_w.value + share * domain.busy_w.value;
}

}  // namespace

bool governs_by_joules(const Context& context) {
  return policy_of(context) == config::ThrottlePolicy::measured;
}

NodeGovernor::NodeGovernor(const Context& context, energy::Sampler* sampler)
    : is_background_(context.topology.by_node),
      sampler_(governs_by_joules(context) ? sampler : nullptr) {
  config::GovernorSettings settings = context.settings.governor;
  settings.policy = policy_of(context);
  governor::Environment environment = environment_of(context);
  if (sampler_ != nullptr) {
    const std::size_t cpus = std::max<std::size_t>(environment.cpus.size(), 1);
    environment.node_joules = [this](double from_s, double to_s) {
      return node_joules(from_s, to_s);
    };
    environment.node_power = [this, cpus](policy::PhaseKind kind, governor::Scope scope) {
      return power_of(sampler_->profile(), kind, scope, cpus);
    };
  }
  governor_ = governor::Governor::create(settings, std::move(environment));
}

void NodeGovernor::begin_checkpoint() {
  const double now_s = sys::monotonic_s();
  if (begun_s_) interval_s_ = now_s - *begun_s_;
  begun_s_ = now_s;
}

governor::PhaseGuard NodeGovernor::begin_capture(std::uint64_t bytes) {
  return governor_->begin_phase({.name = "capture", .bytes = bytes, .scope = governor::Scope::job});
}

governor::PhaseGuard NodeGovernor::begin_phase(const char* step, policy::PhaseKind kind,
                                               std::uint64_t bytes) {
  governor::PhaseStart start{.name = step, .kind = kind, .bytes = bytes};
  start.scope = is_background_ ? governor::Scope::engine : governor::Scope::job;
  if (interval_s_) start.due_s = *begun_s_ + *interval_s_ - sys::monotonic_s();
  return governor_->begin_phase(start);
}

// Returns the joules of the whole node; nullopt if a meter has a gap. For parts that the counters
// leave out, the profile gives the least power.
std::optional<double> NodeGovernor::node_joules(double from_s, double to_s) {
  constexpr double kLeastGapS = 0.001;
  const energy::Total& total = sampler_->total();
  if (total.zones.empty() || total.kind != energy::Kind::measured) return std::nullopt;
  const energy::Amount used = sampler_->between(from_s, to_s).total;
  if (used.gap_s > kLeastGapS) return std::nullopt;
  // A generic profile guesses the power of the rest, which is no basis for a decision.
  if (sampler_->profile().name == "generic" &&
      !energy::is_covered(total.name, energy::Domain::other))
    return std::nullopt;
  double rest_w = 0;
  for (const energy::DomainModel& domain : sampler_->profile().domains) {
    if (!energy::is_covered(total.name, domain.domain)) rest_w += domain.idle_w.value;
  }
  return used.joules + rest_w * (to_s - from_s);
}

std::optional<policy::NodePower> power_of(const energy::Profile& profile, policy::PhaseKind kind,
                                          governor::Scope scope, std::size_t cpus) {
  const auto phase =
      profile.phases.find(kind == policy::PhaseKind::compress ? "compress" : "write");
  const bool is_of_one_core = phase != profile.phases.end();
  const energy::PowerCurve* curve = profile.curve ? &*profile.curve : nullptr;
  if (is_of_one_core) curve = &phase->second;
  if (curve == nullptr || !profile.base_clock_ghz) return std::nullopt;
  double package_w = 0, idle_w = 0, core_w = 0, rest_w = 0;
  for (const energy::DomainModel& domain : profile.domains) {
    if (domain.domain == energy::Domain::package) {
      package_w += busy_watts(domain, 1);
      idle_w += domain.idle_w.value;
      core_w += domain.busy_w.value / static_cast<double>(cpus);
    } else {
      rest_w += busy_watts(domain, 1);
    }
  }
  const double base_ghz = profile.base_clock_ghz->value;
  const double at_base = curve->at(base_ghz);
  if (scope == governor::Scope::job) {
    const double scale = package_w / at_base;
    return policy::NodePower{
        {scale * curve->a.value, curve->b.value, scale * curve->c.value, base_ghz}, rest_w};
  }
  // The curve belongs to the package, with all cores busy or with one. The part of it that depends
  // on the clock is drawn by the cores; most of the rest is drawn by an idle package, too.
  const double all_dynamic_w =
      (is_of_one_core ? idle_w + core_w : package_w) * (1 - curve->c.value / at_base);
  const double dynamic_w =
      std::min(core_w, is_of_one_core ? all_dynamic_w : all_dynamic_w / static_cast<double>(cpus));
  const double a = dynamic_w / std::pow(base_ghz, curve->b.value);
  return policy::NodePower{{a, curve->b.value, core_w - dynamic_w, base_ghz}, 0};
}

}  // namespace diapause::engine
