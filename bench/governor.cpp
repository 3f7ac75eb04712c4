// Measures what the governor does to a phase, and how soon everything is put back when a job is
// killed.
//   governor restore <runs> <diapause> <directory>
//   governor phase compress|write <runs> <MiB> <actuator> <diapause> <directory>
#include "governor/governor.hpp"

#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string_view>
#include <thread>

#include "codec/codec.hpp"
#include "energy/sampler.hpp"
#include "governor/actuators/choice.hpp"
#include "measure.hpp"
#include "sys/process.hpp"
#include "sys/tasks.hpp"

namespace {

using namespace diapause;
namespace fs = std::filesystem;

constexpr const char* kFull = "2000000";

config::GovernorSettings settings_of(config::ActuatorKind actuator, const fs::path& directory,
                                     const char* watchdog) {
  config::GovernorSettings settings;
  settings.policy = config::ThrottlePolicy::fixed;
  settings.actuator = actuator;
  settings.state_path = directory / "state";
  settings.watchdog = watchdog;
  return settings;
}

fs::path limit_in(const fs::path& directory) {
  return directory / "devices/system/cpu/cpufreq/policy0/scaling_max_freq";
}

void make_tree(const fs::path& directory) {
  const fs::path policy = limit_in(directory).parent_path();
  fs::create_directories(policy);
  std::ofstream(policy / "affected_cpus") << "0\n";
  std::ofstream(policy / "base_frequency") << kFull << "\n";
  std::ofstream(policy / "scaling_max_freq") << kFull << "\n";
}

bool is_slowed(const fs::path& directory) {
  std::string value;
  std::ifstream(limit_in(directory)) >> value;
  return value != kFull;
}

// Slows a tree of files, and waits to be killed.
int be_a_victim(const fs::path& directory, const char* watchdog) {
  auto settings = settings_of(config::ActuatorKind::cpufreq, directory, watchdog);
  const governor::ActuatorPlaces places{sys::real_kernel(), directory,
                                        [](Severity, const std::string&) {}};
  const auto parts = governor::make_actuator(settings, places, {{0}, {}});
  if (!parts) bench::give_up(parts.error().message);
  if (const auto slowed = (*parts)->actuator->slow({{0}, {}}, 0.5); !slowed)
    bench::give_up(slowed.error().message);
  std::this_thread::sleep_for(std::chrono::minutes(1));
  return 1;
}

void wait_until(bool slowed, const fs::path& directory) {
  const double end_s = bench::now_s() + 30;
  while (is_slowed(directory) != slowed) {
    if (bench::now_s() > end_s) bench::give_up("the clock did not change within 30 s");
  }
}

// Pairs of seconds and a millisecond: the ratio is milliseconds.
bench::Pairs time_restores(char** argv, int runs, const char* watchdog, const fs::path& directory) {
  make_tree(directory);
  bench::Pairs pairs;
  for (int i = 0; i < runs; ++i) {
    pid_t victim = 0;
    const std::string path = directory;
    const char* arguments[] = {argv[0], "victim", watchdog, path.c_str(), nullptr};
    if (posix_spawn(&victim, argv[0], nullptr, nullptr, const_cast<char**>(arguments), environ) !=
        0) {
      bench::give_up("cannot start the victim");
    }
    wait_until(true, directory);
    kill(victim, SIGKILL);
    pairs.emplace_back(bench::seconds_of([&] { wait_until(false, directory); }), 1e-3);
    waitpid(victim, nullptr, 0);
  }
  return pairs;
}

// The work of a phase, which is done again and again on the same data.
class Phase {
 public:
  Phase(std::string_view kind, std::size_t mib, const fs::path& directory)
      : is_write_(kind == "write"), memory_(mib << 20), file_(directory / "data") {
    auto codec = codec::make_codec(codec::CodecId::shuffle_zstd);
    if (codec) codec_ = std::move(*codec);
    if (!codec && !is_write_) bench::give_up(codec.error().message);
  }
  void run() { is_write_ ? write() : compress(); }

 private:
  void compress() {
    constexpr std::size_t kBlock = 1 << 20;
    ByteVector out(2 * kBlock);
    codec::Shape shape{format::ElementType::float64, {1, 1, 1, kBlock / 8}};
    for (std::size_t at = 0; at + kBlock <= memory_.size(); at += kBlock) {
      const auto block = std::as_bytes(std::span(memory_.data() + at, kBlock));
      (void)codec_->encode(block, shape, {},
                           out);  // data that cannot be compressed is tried all the same
    }
  }
  void write() {
    auto directory = sys::Directory::make_private(sys::real_kernel(), file_);
    auto file = directory ? directory->create_file("image", true) : fail(directory.error());
    if (!file) bench::give_up(file.error().message);
    constexpr std::size_t kPiece = 16 << 20;
    for (std::size_t at = 0; at < memory_.size(); at += kPiece) {
      const auto piece =
          std::as_bytes(std::span(memory_.data() + at, std::min(kPiece, memory_.size() - at)));
      if (auto put = file->write_all(piece, at); !put) bench::give_up(put.error().message);
    }
    if (auto synced = file->sync(); !synced) bench::give_up(synced.error().message);
  }

  bool is_write_;
  bench::WarmMemory memory_;
  fs::path file_;
  std::unique_ptr<codec::Codec> codec_;
};

// Joules of the node since the sampler started; below 0 if nothing measures them.
double joules(energy::Sampler& sampler) {
  if (sampler.total().zones.empty() || sampler.total().kind != energy::Kind::measured) return -1;
  return sampler.since_start().total.joules;
}

config::ActuatorKind kind_of(std::string_view name) {
  if (name == "cpufreq") return config::ActuatorKind::cpufreq;
  if (name == "powercap") return config::ActuatorKind::powercap;
  if (name == "emulated") return config::ActuatorKind::emulated;
  bench::give_up("the actuator is cpufreq, powercap or emulated");
}

struct PhaseTrial {
  std::string_view kind;
  int runs;
  std::size_t mib;
  config::ActuatorKind actuator;
  const char* watchdog;
  fs::path directory;
};

// Prints {"rows": [[slowed s, full s, slowed J, full J], ...], "obtained": 0.85, "source":
// "package+dram"}. J is -1 without a counter.
void time_phases(const PhaseTrial& trial) {
  const auto settings = settings_of(trial.actuator, trial.directory, trial.watchdog);
  const governor::Where where{sys::usable_cpus(), {sys::thread_id()}};
  auto parts = governor::make_actuator(
      settings, {sys::real_kernel(), "/sys", [](Severity, const std::string&) {}}, where);
  if (!parts) bench::give_up(parts.error().message);
  auto sampler = energy::Sampler::start({}, sys::real_kernel());
  if (!sampler) bench::give_up(sampler.error().message);
  Phase phase(trial.kind, trial.mib, trial.directory);
  phase.run();  // warm-up
  const double ratio = trial.kind == "write" ? settings.ratio_write : settings.ratio_compress;
  double obtained = 1;
  std::printf("{\"rows\": [");
  for (int i = 0; i < trial.runs; ++i) {
    double seconds[2], used[2];
    for (const int full : {0, 1}) {
      governor::Actuator& actuator = *(*parts)->actuator;
      if (full == 0) {
        const auto slowed = actuator.slow(where, ratio);
        if (!slowed) bench::give_up(slowed.error().message);
        obtained = *slowed;
      }
      const double before = joules(**sampler);
      seconds[full] = bench::seconds_of([&] { phase.run(); });
      used[full] = before < 0 ? -1 : joules(**sampler) - before;
      if (auto restored = actuator.restore(); !restored) bench::give_up(restored.error().message);
    }
    std::printf("%s[%.9f, %.9f, %.6f, %.6f]", i == 0 ? "" : ", ", seconds[0], seconds[1], used[0],
                used[1]);
  }
  std::printf("], \"obtained\": %.6f, \"source\": \"%s\"}\n", obtained,
              (*sampler)->total().name.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "victim" && argc == 4) return be_a_victim(argv[3], argv[2]);
  if (what == "restore" && argc == 5) {
    bench::print_json(time_restores(argv, std::atoi(argv[2]), argv[3], argv[4]));
    return 0;
  }
  if (what == "phase" && argc == 8) {
    time_phases({argv[2], std::atoi(argv[3]), static_cast<std::size_t>(std::atoi(argv[4])),
                 kind_of(argv[5]), argv[6], argv[7]});
    return 0;
  }
  bench::give_up("usage: see the head of bench/governor.cpp");
}
