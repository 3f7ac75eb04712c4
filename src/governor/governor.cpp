#include "governor/governor.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "governor/actuators/choice.hpp"
#include "governor/watchdog.hpp"
#include "sys/process.hpp"
#include "sys/tasks.hpp"

namespace diapause::governor {
namespace {

// A phase that exceeds, by this factor, even the time of a phase that only computes runs at the
// base clock from then on.
constexpr double kLate = 1.25;

}  // namespace

struct Governor::Parts {
  struct Known {
    policy::Throttle throttle;
    PhaseReport report;
  };

  // The energy that the node had used at a moment.
  struct Mark {
    double time_s = 0;
    std::optional<double> joules;
  };

  struct Running {
    std::size_t phase;  // index of the phase's record
    std::uint64_t bytes;
    Scope scope;
    Mark begin;
  };

  config::GovernorSettings settings;
  Environment environment;
  std::unique_ptr<ActuatorParts> actuator;
  std::vector<Known> known;
  std::optional<Running> running;
  std::optional<Mark> idle_since;      // no phase is running
  std::optional<double> watts_anyway;  // power of the node while no phase is running
  std::string trouble;

  std::size_t index_of(const std::string& name);
  Mark mark() const;
  void note_what_is_drawn_anyway();
  std::optional<double> joules_of(const Running& phase, const Mark& end) const;
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

auto Governor::Parts::mark() const -> Mark {
  const double now_s = environment.clock_s ? environment.clock_s() : sys::monotonic_s();
  return {now_s, environment.node_joules ? environment.node_joules() : std::nullopt};
}

// Returns the joules of a phase. If everybody waits for the phase, everything that the node uses is
// attributed to it. In the background the program runs anyway, so only the additional energy is
// attributed, and a longer phase has no other cost.
std::optional<double> Governor::Parts::joules_of(const Running& phase, const Mark& end) const {
  if (!phase.begin.joules || !end.joules) return std::nullopt;
  const double used = *end.joules - *phase.begin.joules;
  if (phase.scope == Scope::job) return used;
  if (!watts_anyway) return std::nullopt;
  return used - *watts_anyway * (end.time_s - phase.begin.time_s);
}

void Governor::Parts::note_what_is_drawn_anyway() {
  constexpr double kLongEnough = 0.5;  // for a counter that changes ten times a second
  if (!idle_since || !idle_since->joules) return;
  const Mark now = mark();
  const double seconds = now.time_s - idle_since->time_s;
  if (now.joules && seconds >= kLongEnough) watts_anyway = (*now.joules - *idle_since->joules) / seconds;
}

Where Governor::Parts::where(Scope scope) const {
  if (scope == Scope::engine) return {sys::usable_cpus(), {sys::thread_id()}};
  Where all{environment.cpus, {}};
  for (const std::int64_t process : environment.processes) {
    const auto threads = sys::threads_of(*environment.kernel, process);
    if (threads) all.threads.insert(all.threads.end(), threads->begin(), threads->end());
  }
  return all;
}

policy::Choice Governor::Parts::choose(Known& phase, const PhaseStart& start) const {
  const Traits traits = actuator->actuator->traits();
  const policy::PhaseAhead ahead{start.kind, start.bytes, start.due_s};
  std::optional<policy::NodePower> power;  // a model of clocks
  if (traits.sets_clock && environment.node_power) power = environment.node_power(start.kind, start.scope);
  const policy::Choice choice = phase.throttle.choose(ahead, power);
  const bool is_shared =
      traits.slows_cores && start.scope == Scope::engine && std::ranges::includes(sys::usable_cpus(), environment.cpus);
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
  Status status = actuator->actuator->restore();
  if (actuator->watchdog) (void)actuator->watchdog->no_limit();
  return status;
}

void Governor::Parts::give_up(const std::string& why) {
  trouble = why;
  environment.log(Severity::warning, "no phase is slowed from here on: " + why);
}

Governor::Governor(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Governor::~Governor() = default;

std::unique_ptr<Governor> Governor::create(const config::GovernorSettings& settings, Environment environment) {
  if (settings.policy == config::ThrottlePolicy::off) return std::unique_ptr<Governor>(new Governor(nullptr));
  auto parts = std::make_unique<Parts>();
  parts->settings = settings;
  parts->environment = std::move(environment);
  const ActuatorPlaces places{*parts->environment.kernel, parts->environment.sysfs, parts->environment.log};
  auto actuator = make_actuator(settings, places, parts->where(Scope::job));
  if (actuator) parts->actuator = std::move(*actuator);
  if (!actuator) parts->give_up(actuator.error().message);
  return std::unique_ptr<Governor>(new Governor(std::move(parts)));
}

PhaseGuard Governor::begin_phase(const PhaseStart& start) {
  if (!parts_) return {};
  const std::lock_guard lock(mutex_);
  if (parts_->running) return {};
  const std::size_t index = parts_->index_of(start.name);
  Parts::Known& phase = parts_->known[index];
  phase.report.asked = 1;
  if (!parts_->trouble.empty()) return {};
  parts_->note_what_is_drawn_anyway();
  const policy::Choice choice = parts_->choose(phase, start);
  phase.report.why = choice.why;
  phase.report.asked = choice.ratio;
  phase.report.obtained = 1;
  if (choice.ratio < 1) {
    const auto obtained = parts_->slow(start, phase.throttle.expected_s(start.bytes).value_or(0), choice.ratio);
    if (!obtained) {
      phase.report.asked = 1;
      parts_->give_up(obtained.error().message);
      return {};
    }
    phase.report.obtained = *obtained;
  }
  parts_->running = {index, start.bytes, start.scope, parts_->mark()};
  return {*this, {phase.report.asked, phase.report.obtained}};
}

void Governor::end_phase(bool has_succeeded) {
  const std::lock_guard lock(mutex_);
  const Parts::Running running = *std::exchange(parts_->running, std::nullopt);
  Parts::Known& phase = parts_->known[running.phase];
  const Parts::Mark end = parts_->mark();
  parts_->idle_since = end;
  phase.report.seconds = end.time_s - running.begin.time_s;
  if (phase.report.asked < 1) {
    const Status restored = parts_->restore();
    if (!restored) parts_->give_up(restored.error().message + "; `diapause power restore` puts back what is left");
  }
  if (!has_succeeded) return;
  phase.throttle.learn({phase.report.obtained, running.bytes, phase.report.seconds, parts_->joules_of(running, end)});
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
  for (const Parts::Known& phase : parts_->known) reports.push_back(phase.report);
  return reports;
}

PhaseGuard::PhaseGuard(PhaseGuard&& other) noexcept
    : governor_(std::exchange(other.governor_, nullptr)),
      ratios_(other.ratios_),
      has_succeeded_(other.has_succeeded_) {}

PhaseGuard::~PhaseGuard() {
  if (governor_ != nullptr) governor_->end_phase(has_succeeded_);
}

}  // namespace diapause::governor
