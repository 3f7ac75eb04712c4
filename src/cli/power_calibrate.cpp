// `diapause power calibrate`: makes a profile of this machine from its counters during known work.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "cli/meters.hpp"
#include "cli/verbs.hpp"
#include "energy/activity.hpp"
#include "energy/calibration.hpp"
#include "sys/file.hpp"
#include "sys/line_file.hpp"
#include "sys/process.hpp"
#include "sys/text_file.hpp"
#include "sys/thread.hpp"

namespace diapause::cli {
namespace {

using energy::CalibrationSample;

using Work = std::function<void(const std::atomic<bool>& stop)>;

void sleep_s(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

void compute(const std::atomic<bool>& stop) {
  volatile double value = 1;
  while (!stop) value = value * 1.0000001 + 1e-9;
}

// Reads and writes memory that is much larger than the caches.
void copy_memory(const std::atomic<bool>& stop, std::atomic<std::uint64_t>& moved_bytes) {
  constexpr std::size_t kBytes = 64 * kMiB;
  std::vector<char> from(kBytes, 1);
  std::vector<char> to(kBytes, 2);
  while (!stop) {
    std::memcpy(to.data(), from.data(), kBytes);
    moved_bytes += 2 * kBytes;
    std::swap(from, to);
  }
}

Status write_file(const sys::Directory& directory, const std::atomic<bool>& stop) {
  constexpr std::uint64_t kBlock = 16 * kMiB;
  constexpr std::uint64_t kBlocks = 64;
  DIAPAUSE_TRY_ASSIGN(const auto file, directory.create_file("load", true));
  DIAPAUSE_TRY_ASSIGN(const auto buffer, sys::AlignedBuffer::allocate(kBlock));
  for (std::uint64_t i = 0; !stop; ++i) {
    DIAPAUSE_TRY(file.write_all(buffer.bytes(), i % kBlocks * kBlock));
    if (i % kBlocks == kBlocks - 1) DIAPAUSE_TRY(file.sync());
  }
  return {};
}

class Calibration {
 public:
  Calibration(energy::Sampler& sampler, energy::ActivityReader& activity, double step_s)
      : sampler_(sampler), activity_(activity), step_s_(step_s) {}

  // Runs the work in `threads` threads and, after a moment for everything to settle, measures the
  // step.
  Status step(const std::string& name, unsigned threads, const Work& work) {
    std::atomic<bool> stop{false};
    std::vector<sys::Thread> workers;
    Status started;
    for (unsigned i = 0; i < threads && started; ++i) {
      auto worker = sys::Thread::start([&] { work(stop); });
      if (worker) workers.push_back(std::move(*worker));
      if (!worker) started = fail(worker.error());
    }
    Status measured = started ? measure(name) : started;
    stop = true;
    return measured;  // the destructors join the workers
  }

  const std::vector<CalibrationSample>& samples() const { return samples_; }

 private:
  Status measure(const std::string& name) {
    sleep_s(step_s_ / 5);
    const double from_s = sys::monotonic_s();
    DIAPAUSE_TRY(activity_.since_last(from_s));
    sleep_s(step_s_);
    const double to_s = sys::monotonic_s();
    CalibrationSample sample;
    sample.step = name;
    DIAPAUSE_TRY_ASSIGN(sample.activity, activity_.since_last(to_s));
    const energy::Usage usage = sampler_.between(from_s, to_s);
    add_watts(usage, sample);
    fmt::print(stderr, "{:8} {:5.1f} % busy", name, 100 * sample.activity.utilisation);
    for (const auto& [domain, watts] : sample.watts)
      fmt::print(stderr, "  {} {:.2f} W", domain_name(domain), watts);
    fmt::print(stderr, "\n");
    samples_.push_back(std::move(sample));
    return {};
  }

  // Adds, for each domain, the parts that its first meter measures.
  void add_watts(const energy::Usage& usage, CalibrationSample& sample) const {
    const auto& domains = sampler_.domains();
    std::map<energy::Domain, std::string> meters;
    for (std::size_t i = 0; i < domains.size(); ++i) {
      const energy::Zone& zone = domains[i];
      const std::string meter = zone.source.substr(0, zone.source.find(' '));
      const bool counts = zone.kind == energy::Kind::measured && usage.domains[i].covered_s > 0;
      if (!counts || meters.try_emplace(zone.domain, meter).first->second != meter) continue;
      sample.watts[zone.domain] += usage.domains[i].joules / usage.domains[i].covered_s;
    }
  }

  energy::Sampler& sampler_;
  energy::ActivityReader& activity_;
  const double step_s_;
  std::vector<CalibrationSample> samples_;
};

Status run_steps(Calibration& calibration, const std::string& directory,
                 std::atomic<std::uint64_t>& moved_bytes) {
  const unsigned cores = sys::usable_cores();
  DIAPAUSE_TRY(calibration.step("idle", 0, {}));
  DIAPAUSE_TRY(calibration.step("half", (cores + 1) / 2, compute));
  DIAPAUSE_TRY(calibration.step("busy", cores, compute));
  DIAPAUSE_TRY(
      calibration.step("memory", cores, [&](const auto& stop) { copy_memory(stop, moved_bytes); }));
  if (directory.empty()) return {};
  DIAPAUSE_TRY_ASSIGN(const auto folder,
                      sys::Directory::make_private(sys::real_kernel(), directory + "/calibrate"));
  Status written;
  DIAPAUSE_TRY(
      calibration.step("disk", 1, [&](const auto& stop) { written = write_file(folder, stop); }));
  DIAPAUSE_TRY(folder.remove_file("load"));
  return written;
}

// Adds the samples of this run to those of earlier ones.
Result<std::vector<CalibrationSample>> keep(const std::string& path,
                                            std::vector<CalibrationSample> samples) {
  if (path.empty()) return samples;
  for (const CalibrationSample& sample : samples) {
    DIAPAUSE_TRY(sys::append_line(sys::real_kernel(), path, sample_line(sample)));
  }
  samples.clear();
  DIAPAUSE_TRY_ASSIGN(auto file, sys::LineFile::open(sys::real_kernel(), path));
  while (true) {
    DIAPAUSE_TRY_ASSIGN(const auto line, file.next());
    if (!line) return samples;
    auto sample = energy::parse_sample(*line);
    if (!sample)
      return fail(Code::corrupt,
                  fmt::format("{}:{} {}", path, samples.size() + 1, sample.error().message));
    samples.push_back(std::move(*sample));
  }
}

// Returns by which share the worst of the counters may be off that the samples are from.
double counters_off(const energy::Sampler& sampler) {
  double worst = 0;
  for (const energy::Zone& zone : sampler.domains()) {
    if (zone.kind == energy::Kind::measured)
      worst = std::max(worst, zone.accuracy.share.value_or(energy::Zone().accuracy.share.value()));
  }
  return worst;
}

Status calibrate(const PowerCalibrateArguments& arguments) {
  DIAPAUSE_TRY_ASSIGN(const auto settings, meter_settings(arguments.choice, Unless::automatic));
  DIAPAUSE_TRY_ASSIGN(const auto sampler, energy::Sampler::start(settings, sys::real_kernel()));
  const auto& total = sampler->total();
  if (total.zones.empty() || total.kind != energy::Kind::measured) {
    return fail(Code::not_found,
                "no counter of this machine can be read, and a model cannot be fitted to itself; "
                "`diapause power` says "
                "what is missing");
  }
  std::atomic<std::uint64_t> moved_bytes{0};
  DIAPAUSE_TRY_ASSIGN(auto activity,
                      energy::ActivityReader::open(sys::real_kernel(), settings.root, moved_bytes));
  Calibration calibration(*sampler, activity, arguments.step_s);
  DIAPAUSE_TRY(run_steps(calibration, arguments.directory, moved_bytes));
  DIAPAUSE_TRY_ASSIGN(const auto samples, keep(arguments.samples, calibration.samples()));
  const std::string where =
      fmt::format("`diapause power calibrate` on {}, {}", sys::host_name(), total.name);
  DIAPAUSE_TRY_ASSIGN(energy::Profile profile, energy::fit_profile(samples, where));
  if (arguments.validate) {
    Calibration again(*sampler, activity, arguments.step_s);
    DIAPAUSE_TRY(run_steps(again, arguments.directory, moved_bytes));
    DIAPAUSE_TRY_ASSIGN(profile.error, energy::hold_out_error(profile, again.samples(),
                                                              counters_off(*sampler), where));
    fmt::print(stderr, "hold-out error {:.1f} %, with that of the counters\n",
               100 * profile.error->value);
  }
  if (!arguments.file.empty()) {
    return sys::replace_text_file(sys::real_kernel(), arguments.file, profile_toml(profile));
  }
  fmt::print("{}", profile_toml(profile));
  return {};
}

}  // namespace

int power_calibrate(const PowerCalibrateArguments& arguments) {
  const Status done = calibrate(arguments);
  return done ? kDone : complain(done.error());
}

}  // namespace diapause::cli
