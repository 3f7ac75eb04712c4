#include "governor/governor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "governor/actuators/choice.hpp"
#include "governor/watchdog.hpp"
#include "sys/process.hpp"
#include "sys/tasks.hpp"

namespace diapause::governor {
namespace {

// A phase that lasts so much longer than even a phase that only computes should runs at the base clock from then on.
constexpr double kLate = 1.25;

struct Known {
  policy::Throttle throttle;
  PhaseReport report;
};

struct Running {
  std::size_t phase;  // index of what is known
  std::uint64_t bytes;
  double begin_s;
  std::optional<double> begin_joules;
};

}  // namespace

struct Governor::Parts {
  config::GovernorSettings settings;
  Surroundings surroundings;
  std::unique_ptr<ActuatorParts> actuator;
  std::vector<Known> known;
  std::optional<Running> running;
  std::string trouble;

  std::size_t index_of(const std::string& name);
  std::optional<double> joules_now() const;
  Where where(Scope scope) const;
  policy::Choice choose(Known& phase, const PhaseStart& start) const;
  Result<double> slow(const PhaseStart& start, double expected_s, double ratio);
  Status restore();
  void give_up(const std::string& why);
};

std::size_t Governor::Parts::index_of(const std::string& name) {
  const auto found = std::ranges::find(known, name, [](const Known& phase) { return phase.report.name; });
  const auto index = static_cast<std::size_t>(found - known.begin());
  if (found == known.end()) known.push_back({policy::Throttle(settings), {.name = name, .phi = std::nullopt}});
  return index;
}

std::optional<double> Governor::Parts::joules_now() const {
  return surroundings.node_joules ? surroundings.node_joules() : std::nullopt;
}

Where Governor::Parts::where(Scope scope) const {
  if (scope == Scope::engine) return {sys::usable_cpus(), {sys::thread_id()}};
  Where all{surroundings.cpus, {}};
  for (const std::int64_t process : surroundings.processes) {
    const auto threads = sys::threads_of(*surroundings.kernel, process);
    if (threads) all.threads.insert(all.threads.end(), threads->begin(), threads->end());
  }
  return all;
}

policy::Choice Governor::Parts::choose(Known& phase, const PhaseStart& start) const {
  const Traits traits = actuator->actuator->traits();
  const policy::PhaseAhead ahead{start.kind, start.bytes, start.due_s};
  // The model is one of clocks.
  const policy::Choice choice =
      phase.throttle.choose(ahead, traits.sets_clock ? surroundings.node_power : std::nullopt);
  const bool is_shared = traits.slows_cores && start.scope == Scope::engine &&
                         std::ranges::includes(sys::usable_cpus(), surroundings.cpus);
  return choice.ratio < 1 && is_shared ? policy::Choice{1, policy::Why::shared_cores} : choice;
}

Result<double> Governor::Parts::slow(const PhaseStart& start, double expected_s, double ratio) {
  if (actuator->watchdog) {
    const double longest_s = kLate * expected_s * policy::slowdown(1, ratio);
    DIAPAUSE_TRY(actuator->watchdog->limit(std::min(longest_s, start.due_s)));
  }
  return actuator->actuator->slow(where(start.scope), ratio);
}

Status Governor::Parts::restore() {
  const Status status = actuator->actuator->restore();
  if (actuator->watchdog) (void)actuator->watchdog->no_limit();
  return status;
}

void Governor::Parts::give_up(const std::string& why) {
  trouble = why;
  surroundings.log(Severity::warning, "no phase is slowed from here on: " + why);
}

Governor::Governor(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Governor::~Governor() = default;

std::unique_ptr<Governor> Governor::create(const config::GovernorSettings& settings, Surroundings surroundings) {
  if (settings.policy == config::ThrottlePolicy::off) return std::unique_ptr<Governor>(new Governor(nullptr));
  auto parts = std::make_unique<Parts>();
  parts->settings = settings;
  parts->surroundings = std::move(surroundings);
  const ActuatorPlaces places{*parts->surroundings.kernel, parts->surroundings.sysfs, parts->surroundings.log};
  auto actuator = make_actuator(settings, places, parts->where(Scope::job));
  if (actuator) parts->actuator = std::move(*actuator);
  if (!actuator) parts->give_up(actuator.error().message);
  return std::unique_ptr<Governor>(new Governor(std::move(parts)));
}

PhaseGuard Governor::begin_phase(const PhaseStart& start) {
  if (!parts_) return {};
  const std::lock_guard lock(mutex_);
  if (parts_->running || !parts_->trouble.empty()) return {};
  const std::size_t index = parts_->index_of(start.name);
  Known& phase = parts_->known[index];
  const policy::Choice choice = parts_->choose(phase, start);
  phase.report.why = choice.why;
  phase.report.asked = choice.ratio;
  phase.report.obtained = 1;
  if (choice.ratio < 1) {
    const auto obtained = parts_->slow(start, phase.throttle.expected_s(start.bytes).value_or(0), choice.ratio);
    if (!obtained) {
      parts_->give_up(obtained.error().message);
      return {};
    }
    phase.report.obtained = *obtained;
  }
  parts_->running = {index, start.bytes, sys::monotonic_s(), parts_->joules_now()};
  return PhaseGuard(*this);
}

void Governor::end_phase(bool has_succeeded) {
  const std::lock_guard lock(mutex_);
  const Running running = *std::exchange(parts_->running, std::nullopt);
  Known& phase = parts_->known[running.phase];
  const double seconds = sys::monotonic_s() - running.begin_s;
  const auto joules = parts_->joules_now();
  phase.report.seconds = seconds;
  if (phase.report.asked < 1) {
    const Status restored = parts_->restore();
    if (!restored) parts_->give_up(restored.error().message + "; `diapause power restore` puts back what is left");
  }
  if (!has_succeeded) return;
  policy::PhaseSeen seen{phase.report.obtained, running.bytes, seconds, std::nullopt};
  if (joules && running.begin_joules) seen.node_joules = *joules - *running.begin_joules;
  phase.throttle.learn(seen);
  phase.report.phi = phase.throttle.phi();
}

std::string Governor::trouble() const {
  const std::lock_guard lock(mutex_);
  return parts_ ? parts_->trouble : "";
}

std::string Governor::actuator() const {
  const std::lock_guard lock(mutex_);
  return parts_ && parts_->actuator ? std::string(parts_->actuator->actuator->traits().name) : "";
}

std::vector<PhaseReport> Governor::report() const {
  const std::lock_guard lock(mutex_);
  std::vector<PhaseReport> reports;
  if (!parts_) return reports;
  for (const Known& phase : parts_->known) reports.push_back(phase.report);
  return reports;
}

PhaseGuard::PhaseGuard(PhaseGuard&& other) noexcept
    : governor_(std::exchange(other.governor_, nullptr)), has_succeeded_(other.has_succeeded_) {}

PhaseGuard::~PhaseGuard() {
  if (governor_ != nullptr) governor_->end_phase(has_succeeded_);
}

}  // namespace diapause::governor
