#include "energy/sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "energy/activity.hpp"
#include "energy/boards.hpp"
#include "energy/collector.hpp"
#include "energy/meters/registry.hpp"
#include "sys/process.hpp"
#include "sys/text_file.hpp"
#include "sys/thread.hpp"

namespace diapause::energy {
namespace {

constexpr double kProbeS = 0.1;       // a source has at least so long to show that it is live
constexpr double kLongestProbeS = 5;  // and at most so long
constexpr double kQuietS = 0.05;      // in this part of it no processor is kept busy for that
constexpr double kProbePeriodS = 0.005;
constexpr double kMarkedShare = 1.0 / 500;  // part of the time that samples at marks may take
constexpr double kMarksApartS = 0.01;  // at least, because waking the thread costs the caller, too

// Finds the meters of these names. The list {"auto"} means all of them.
Result<std::vector<MeterEntry>> chosen_meters(const std::vector<std::string>& names) {
  std::vector<MeterEntry> chosen;
  std::vector<std::string_view> known;
  for (const MeterEntry& entry : all_meters()) {
    known.push_back(entry.name);
    const bool is_named = std::find(names.begin(), names.end(), entry.name) != names.end();
    if (is_named || names == std::vector<std::string>{"auto"}) chosen.push_back(entry);
  }
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (names.size() == 1 && (name == "auto" || name == "off")) continue;
    return fail(
        Code::config,
        fmt::format("energy.meters: there is no meter '{}'; use \"auto\" or \"off\" alone, or "
                    "names out of {}",
                    name, fmt::join(known, ", ")));
  }
  return chosen;
}

}  // namespace

Result<Profile> load_profile(const config::EnergySettings& settings, sys::Kernel& kernel) {
  const MachineFacts facts{count_cpus(kernel, settings.root), settings.tdp_w};
  if (const auto text = built_in_profile(settings.profile); !text.empty()) {
    return parse_profile(text, "built-in profile " + settings.profile, facts);
  }
  const auto text = sys::read_text_file(kernel, settings.profile);
  if (text) return parse_profile(*text, settings.profile, facts);
  return fail(Code::config, fmt::format("energy.profile: {}; built in are {}", text.error().message,
                                        fmt::join(built_in_profiles(), ", ")));
}

struct SamplerState {
  SamplerState(const config::EnergySettings& wanted, sys::Kernel& the_kernel,
               std::vector<MeterEntry> entries, std::optional<Profile> known)
      : settings(wanted),
        kernel(the_kernel),
        chosen(std::move(entries)),
        profile_read(std::move(known)) {}

  void run();
  const Profile& profile();
  void discover();
  void probe();
  void pause(double seconds);
  bool sample_where_marked(double until_s);
  void decide();
  Collector& decided() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return is_decided; });
    return *collector;
  }

  const config::EnergySettings settings;
  sys::Kernel& kernel;
  const std::vector<MeterEntry> chosen;
  std::once_flag is_profile_read;
  std::optional<Profile> profile_read;  // for profile() only
  std::atomic<std::uint64_t> moved_bytes{0};
  std::atomic<bool> is_marked{false};
  std::atomic<double> next_mark_s{0};  // marks before this time are passed over

  // It protects all members below. The collector's zones and total do not change once it has
  // decided.
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::optional<Collector> collector;
  std::vector<Obstacle> obstacles;
  std::vector<Obstacle> boards;  // boards that no meter covers
  std::vector<Point> told;       // what now() has told, for each domain
  bool is_decided = false;
  bool ends = false;
  std::atomic<bool> is_hurried{false};

  std::optional<sys::Thread> thread;  // the last member, because it must end first
};

// One that is built in is read by whoever needs it first, because the start of a job need not wait
// for that.
const Profile& SamplerState::profile() {
  std::call_once(is_profile_read, [this] {
    if (profile_read) return;
    auto built_in = load_profile(settings, kernel);
    profile_read = built_in ? std::move(*built_in) : Profile();
  });
  return *profile_read;
}

void SamplerState::run() {
  discover();
  probe();
  decide();
  const double period_s = settings.period_ms / 1e3;
  double next_s = sys::monotonic_s();
  do {
    {
      const std::lock_guard lock(mutex);
      collector->collect(sys::monotonic_s());
    }
    const double now_s = sys::monotonic_s();
    next_s = std::max(next_s + period_s, now_s);  // missed samples are not made up for
    if (next_s <= now_s) next_s = now_s + period_s;
  } while (sample_where_marked(next_s));
}

// Sleeps until the given time, and samples at marks meanwhile. Returns false if the thread is to
// end.
bool SamplerState::sample_where_marked(double until_s) {
  std::unique_lock lock(mutex);
  while (true) {
    const std::chrono::duration<double> left(std::max(until_s - sys::monotonic_s(), 0.0));
    const bool is_woken = changed.wait_for(lock, left, [this] { return ends || is_marked; });
    if (!is_woken || ends) return !ends;
    is_marked = false;
    const double begin_s = sys::monotonic_s();
    collector->collect_well(begin_s);
    const double end_s = sys::monotonic_s();
    next_mark_s = end_s + std::max((end_s - begin_s) / kMarkedShare, kMarksApartS);
  }
}

void SamplerState::pause(double seconds) {
  std::unique_lock lock(mutex);
  changed.wait_for(lock, std::chrono::duration<double>(std::max(seconds, 0.0)),
                   [this] { return is_hurried.load(); });
}

void SamplerState::discover() {
  std::vector<std::unique_ptr<Meter>> meters;
  std::vector<Obstacle> found;
  for (const MeterEntry& entry : chosen) {
    Discovery discovery = entry.discover({kernel, settings, profile(), moved_bytes});
    const bool is_asked_for = chosen.size() < all_meters().size();
    if (is_asked_for && !discovery.meter && discovery.obstacles.empty()) {
      found.push_back({std::string(entry.name), "there is none here, or no setting says where"});
    }
    if (discovery.meter) meters.push_back(std::move(discovery.meter));
    found.insert(found.end(), discovery.obstacles.begin(), discovery.obstacles.end());
  }
  const std::lock_guard lock(mutex);
  collector.emplace(std::move(meters), settings.period_ms / 1e3);
  obstacles = std::move(found);
  collector->collect(sys::monotonic_s());
}

// A counter that exists need not count. Most that do show it soon, also while the node is idle. For
// the others this keeps a processor busy, but not for long, and waits for those that change rarely.
void SamplerState::probe() {
  const double begin_s = sys::monotonic_s();
  for (double undecided_s = collector->undecided_s(); undecided_s > 0 && !is_hurried;
       undecided_s = collector->undecided_s()) {
    const double now_s = sys::monotonic_s();
    const double probed_s = now_s - begin_s;
    if (probed_s >= std::min(std::max(kProbeS, 3 * undecided_s), kLongestProbeS)) return;
    if (probed_s >= kQuietS && probed_s < kProbeS && collector->needs_load()) {
      while (sys::monotonic_s() < now_s + kProbePeriodS) continue;
    } else {
      pause(kProbePeriodS);
    }
    const std::lock_guard lock(mutex);
    collector->collect(sys::monotonic_s());
  }
}

void SamplerState::decide() {
  {
    const std::lock_guard lock(mutex);
    const bool is_automatic = settings.meters == std::vector<std::string>{"auto"};
    collector->decide(is_automatic ? Collector::Models::where_nothing_is_measured
                                   : Collector::Models::always);
    obstacles.insert(obstacles.end(), collector->dropped().begin(), collector->dropped().end());
    if (!chosen.empty()) boards = boards_left_out(kernel, settings.root, collector->zones());
    obstacles.insert(obstacles.end(), boards.begin(), boards.end());
    is_decided = true;
  }
  changed.notify_all();
}

Result<std::unique_ptr<Sampler>> Sampler::start(const config::EnergySettings& settings,
                                                sys::Kernel& kernel) {
  DIAPAUSE_TRY_ASSIGN(auto chosen, chosen_meters(settings.meters));
  std::optional<Profile> profile;
  if (built_in_profile(settings.profile).empty()) {
    DIAPAUSE_TRY_ASSIGN(profile, load_profile(settings, kernel));
  }
  const bool is_off = chosen.empty();
  auto state =
      std::make_unique<SamplerState>(settings, kernel, std::move(chosen), std::move(profile));
  if (is_off) {
    state->discover();
    state->decide();
  } else {
    DIAPAUSE_TRY_ASSIGN(auto thread, sys::Thread::start([at = state.get()] { at->run(); }));
    state->thread.emplace(std::move(thread));
  }
  return std::unique_ptr<Sampler>(new Sampler(std::move(state)));
}

Sampler::Sampler(std::unique_ptr<SamplerState> state) : state_(std::move(state)) {}

Sampler::~Sampler() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ends = true;
  }
  hurry();
}

void Sampler::hurry() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_hurried = true;
  }
  state_->changed.notify_all();
}

const std::vector<Zone>& Sampler::domains() const { return state_->decided().zones(); }
const Total& Sampler::total() const { return state_->decided().total(); }
const Total& Sampler::fast_parts() const { return state_->decided().fast_parts(); }
const Profile& Sampler::profile() const { return state_->profile(); }
double Sampler::period_s() const { return state_->settings.period_ms / 1e3; }
bool Sampler::is_running() const { return state_->thread.has_value(); }
double Sampler::started_s() const { return state_->decided().began_s(); }
double Sampler::cost_s() const { return state_->thread ? state_->thread->cpu_s() : 0; }
// If the thread overlooks a mark because it is about to sleep, the sample comes late, which does no
// harm.
void Sampler::mark() {
  if (!state_->thread || sys::monotonic_s() < state_->next_mark_s.load(std::memory_order_relaxed))
    return;
  if (!state_->is_marked.exchange(true)) state_->changed.notify_all();
}

void Sampler::moved(std::uint64_t bytes) {
  state_->moved_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

const std::vector<Obstacle>& Sampler::obstacles() const {
  state_->decided();
  return state_->obstacles;
}

const std::vector<Obstacle>& Sampler::boards_left_out() const {
  state_->decided();
  return state_->boards;
}

std::string Sampler::failure(std::size_t domain) const {
  Collector& collector = state_->decided();
  const std::lock_guard lock(state_->mutex);
  return collector.failure(domain);
}

Usage Sampler::between(double from_s, double to_s) {
  Collector& collector = state_->decided();
  const std::lock_guard lock(state_->mutex);
  if (to_s > collector.collected_s()) collector.collect_well(sys::monotonic_s());
  Usage usage;
  for (std::size_t i = 0; i < collector.zones().size(); ++i)
    usage.domains.push_back(collector.between(i, from_s, to_s));
  usage.total = collector.total_between(from_s, to_s);
  return usage;
}

Usage Sampler::since_start() { return between(started_s(), sys::monotonic_s()); }

Sampler::Now Sampler::now() {
  Collector& collector = state_->decided();
  const std::lock_guard lock(state_->mutex);
  const double now_s = sys::monotonic_s();
  collector.collect_well(now_s);
  state_->told.resize(collector.zones().size());
  std::vector<double> off_j;
  for (std::size_t i = 0; i < state_->told.size(); ++i) {
    Point& told = state_->told[i];
    const Point point = collector.series(i).at(now_s);
    told = {now_s, std::max(told.joules, point.joules), std::max(told.covered_s, point.covered_s)};
    off_j.push_back(collector.series(i).off_at(now_s) + told.joules - point.joules);
  }
  return {state_->told, std::move(off_j)};
}

}  // namespace diapause::energy
