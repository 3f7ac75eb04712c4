#include "governor/governor.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "governor/actuators/choice.hpp"
#include "governor/clock_meter.hpp"
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

  struct Running {
    std::size_t phase;  // index of the phase's record
    std::uint64_t bytes;
    Scope scope;
    Ratios set;       // the limit, which is obtained where nothing measures the clock
    bool is_limited;  // something has to be restored
    double begin_s;
    std::optional<ClockMeter::Counts> clock;
  };

  config::GovernorSettings settings;
  Environment environment;
  std::unique_ptr<ActuatorParts> actuator;
  std::vector<Known> known;
  std::optional<Running> running;
  std::optional<double> idle_since_s;  // no phase is running
  std::optional<double> watts_anyway;  // power of the node while no phase is running
  ClockMeter clocks;
  bool has_told_what_is_missing = false;
  std::string trouble;

  std::size_t index_of(const std::string& name);
  double now_s() const;
  std::optional<double> joules_between(double from_s, double to_s) const;
  void note_what_is_drawn_anyway();
  std::optional<double> joules_of(const Running& phase, double end_s) const;
  Where where(Scope scope) const;
  bool is_shared(Scope scope) const;
  policy::Choice choose(Known& phase, const PhaseStart& start) const;
  bool compares_at_base(const policy::Choice& choice, Scope scope) const;
  void tell_what_is_missing(policy::Why why);
  Ratios ratios_of(const Running& phase) const;
  Result<double> slow(const PhaseStart& start, std::optional<double> expected_s, double ratio);
  Status restore();
  void give_up(const std::string& why);
};

std::size_t Governor::Parts::index_of(const std::string& name) {
  const auto found =
      std::ranges::find(known, name, [](const Known& phase) { return phase.report.name; });
  const auto index = static_cast<std::size_t>(found - known.begin());
  if (found == known.end())
    known.push_back({policy::Throttle(settings), {.name = name, .phi = std::nullopt}});
  return index;
}

double Governor::Parts::now_s() const {
  return environment.clock_s ? environment.clock_s() : sys::monotonic_s();
}

std::optional<double> Governor::Parts::joules_between(double from_s, double to_s) const {
  return environment.node_joules ? environment.node_joules(from_s, to_s) : std::nullopt;
}

// Returns the joules of a phase. If everybody waits for the phase, everything that the node uses is
// attributed to it. In the background the program runs anyway, so only the additional energy is
// attributed, and a longer phase has no other cost.
std::optional<double> Governor::Parts::joules_of(const Running& phase, double end_s) const {
  const auto used = joules_between(phase.begin_s, end_s);
  if (!used || phase.scope == Scope::job) return used;
  if (!watts_anyway) return std::nullopt;
  return *used - *watts_anyway * (end_s - phase.begin_s);
}

void Governor::Parts::note_what_is_drawn_anyway() {
  constexpr double kLongEnough = 0.5;  // for a counter that changes ten times a second
  if (!idle_since_s) return;
  const double seconds = now_s() - *idle_since_s;
  if (seconds < kLongEnough) return;
  if (const auto joules = joules_between(*idle_since_s, *idle_since_s + seconds))
    watts_anyway = *joules / seconds;
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
  std::optional<policy::NodePower> power;  // the power by a model of clocks
  if (traits.sets_clock && environment.node_power)
    power = environment.node_power(start.kind, start.scope);
  const policy::Choice choice = phase.throttle.choose(ahead, power);
  return choice.ratio < 1 && is_shared(start.scope) ? policy::Choice{1, policy::Why::shared_cores}
                                                    : choice;
}

bool Governor::Parts::is_shared(Scope scope) const {
  return actuator->actuator->traits().slows_cores && scope == Scope::engine &&
         std::ranges::includes(sys::usable_cpus(), environment.cpus);
}

// Returns whether the phase is one with which slower ones are compared. Ratios are of the base
// clock, so it must not run above that.
bool Governor::Parts::compares_at_base(const policy::Choice& choice, Scope scope) const {
  using policy::Why;
  return settings.policy == config::ThrottlePolicy::measured &&
         actuator->actuator->traits().limits_turbo &&
         (choice.why == Why::comparison || choice.why == Why::duration_unknown) &&
         !is_shared(scope);
}

void Governor::Parts::tell_what_is_missing(policy::Why why) {
  if (why != policy::Why::power_unknown || std::exchange(has_told_what_is_missing, true)) return;
  environment.log(Severity::warning, "no phase is slowed: " + std::string(policy::why_text(why)));
}

Ratios Governor::Parts::ratios_of(const Running& phase) const {
  Ratios ratios = phase.set;
  if (!actuator->actuator->traits().is_real) return ratios;
  if (const auto measured = clock_ratio(phase.clock, clocks.read())) ratios.obtained = *measured;
  return ratios;
}

Result<double> Governor::Parts::slow(const PhaseStart& start, std::optional<double> expected_s,
                                     double ratio) {
  if (actuator->watchdog && expected_s) {
    const double longest_s = kLate * *expected_s * policy::slowdown(1, ratio);
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

std::unique_ptr<Governor> Governor::create(const config::GovernorSettings& settings,
                                           Environment environment) {
  if (settings.policy == config::ThrottlePolicy::off)
    return std::unique_ptr<Governor>(new Governor(nullptr));
  auto parts = std::make_unique<Parts>();
  parts->settings = settings;
  parts->environment = std::move(environment);
  const ActuatorPlaces places{*parts->environment.kernel, parts->environment.sysfs,
                              parts->environment.log};
  auto actuator = make_actuator(settings, places, parts->where(Scope::job));
  if (actuator) parts->actuator = std::move(*actuator);
  if (!actuator) parts->give_up(actuator.error().message);
  if (actuator) {
    const Environment& around = parts->environment;
    parts->clocks = ClockMeter::open(*around.kernel, around.sysfs, around.cpus);
  }
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
  parts_->tell_what_is_missing(choice.why);
  const bool is_limited = choice.ratio < 1 || parts_->compares_at_base(choice, start.scope);
  if (is_limited) {
    const auto obtained = parts_->slow(start, phase.throttle.expected_s(start.bytes), choice.ratio);
    if (!obtained) {
      phase.report.asked = 1;
      parts_->give_up(obtained.error().message);
      return {};
    }
    phase.report.obtained = *obtained;
  }
  const Ratios set{phase.report.asked, phase.report.obtained};
  parts_->running = {index,      start.bytes,     start.scope,          set,
                     is_limited, parts_->now_s(), parts_->clocks.read()};
  (void)parts_->joules_between(parts_->running->begin_s, parts_->running->begin_s);
  return {*this, set};
}

Ratios Governor::ratios_so_far() const {
  const std::lock_guard lock(mutex_);
  return parts_->ratios_of(*parts_->running);
}

void Governor::end_phase(bool has_succeeded) {
  const std::lock_guard lock(mutex_);
  const Parts::Running running = *std::exchange(parts_->running, std::nullopt);
  Parts::Known& phase = parts_->known[running.phase];
  const double end_s = parts_->now_s();
  const auto joules = parts_->joules_of(running, end_s);
  parts_->idle_since_s = end_s;
  phase.report.seconds = end_s - running.begin_s;
  phase.report.obtained = parts_->ratios_of(running).obtained;
  if (running.is_limited) {
    const Status restored = parts_->restore();
    if (!restored)
      parts_->give_up(restored.error().message +
                      "; `diapause power restore` puts back what is left");
  }
  if (!has_succeeded) return;
  phase.throttle.learn({running.set.obtained, running.bytes, phase.report.seconds, joules});
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

Ratios PhaseGuard::ratios() const {
  return governor_ != nullptr ? governor_->ratios_so_far() : ratios_;
}

PhaseGuard::~PhaseGuard() {
  if (governor_ != nullptr) governor_->end_phase(has_succeeded_);
}

}  // namespace diapause::governor
