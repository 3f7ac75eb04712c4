#include "conformance/meter_world.hpp"

#include <fmt/core.h>
#include <linux/ipmi.h>
#include <sys/ioctl.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "energy/trace.hpp"
#include "sys/library.hpp"
#include "sys/process.hpp"

namespace diapause::energy {

MeterWorld::MeterWorld()
    : now_s_(sys::monotonic_s()), unix_s_(static_cast<double>(sys::unix_time_ns()) / 1e9) {
  // In memory, as the files of the kernel are: they are written thousands of times.
  std::string pattern = "/dev/shm/diapause-meters-XXXXXX";
  root_ = ::mkdtemp(pattern.data());
  settings_.root = root_;
  profile_ = *parse_profile(built_in_profile("generic"), "generic", {4, 100});
}

MeterWorld::~MeterWorld() { std::filesystem::remove_all(root_); }

void MeterWorld::add_part(double watts) {
  watts_.push_back(watts);
  joules_.push_back(1000);
  is_silent_.push_back(false);
}

void MeterWorld::advance(double seconds) {
  now_s_ += seconds;
  unix_s_ += seconds;
  for (std::size_t i = 0; i < watts_.size(); ++i) {
    if (!is_silent_[i]) joules_[i] += watts_[i] * seconds;
    show(i, joules_[i], is_silent_[i] ? 0 : watts_[i]);
  }
  end_of_moment();
}

Discovery MeterWorld::discover() {
  advance(0);
  Environment environment{kernel_, settings_, profile_, moved_bytes_};
  return open(environment);
}

// In place, as the kernel does: a file that is open shows the new value.
void MeterWorld::write(const std::string& path, const std::string& text) const {
  const std::filesystem::path file = root_.string() + path;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text << "\n";
}

namespace {

std::string micro(double value) { return fmt::format("{:.0f}", value * 1e6); }

// Files with a number each.
class FilesWorld : public MeterWorld {
 public:
  bool fail(std::size_t part, int error) override {
    kernel().fail_path(path(part), error);
    return true;
  }
  void deny() override {
    for (std::size_t i = 0; i < parts(); ++i) fail(i, EACCES);
  }

 protected:
  virtual std::string path(std::size_t part) const = 0;
};

class PowercapWorld final : public FilesWorld {
 public:
  explicit PowercapWorld(int packages = 2) {
    for (int i = 0; i < packages; ++i) {
      const std::string zone = folder(static_cast<std::size_t>(2 * i));
      write(zone + "/name", fmt::format("package-{}", i));
      write(folder(static_cast<std::size_t>(2 * i + 1)) + "/name", "dram");
      add_part(200 + 10 * i);
      add_part(30 + i);
    }
    for (std::size_t i = 0; i < parts(); ++i)
      write(folder(i) + "/max_energy_range_uj", micro(range_j()));
  }
  std::string name() const override { return "powercap"; }
  double range_j() const override { return 262143.328850; }
  std::unique_ptr<MeterWorld> without_sources() const override {
    return std::make_unique<PowercapWorld>(0);
  }

 protected:
  Discovery open(const Environment& environment) override { return discover_powercap(environment); }
  void show(std::size_t part, double joules, double) override {
    write(path(part), micro(std::fmod(joules, range_j())));
  }
  std::string path(std::size_t part) const override { return folder(part) + "/energy_uj"; }

 private:
  static std::string folder(std::size_t part) {
    const std::string package = fmt::format("/sys/class/powercap/intel-rapl:{}", part / 2);
    return part % 2 == 0 ? package : fmt::format("{}:0", package);
  }
};

class PerfWorld final : public MeterWorld {
 public:
  explicit PerfWorld(bool is_there = true) {
    if (!is_there) return;
    write(kUnit + "type", "17");
    write(kUnit + "cpumask", "0,8");
    write(kUnit + "events/energy-pkg", "event=0x02");
    write(kUnit + "events/energy-pkg.scale", "2.3283064365386962890625e-10");
    write("/sys/devices/system/cpu/cpu0/topology/physical_package_id", "0");
    write("/sys/devices/system/cpu/cpu8/topology/physical_package_id", "1");
    add_part(150);
    add_part(90);
  }
  std::string name() const override { return "perf"; }
  bool fail(std::size_t part, int error) override {
    kernel().fail_path("perf 2 " + std::to_string(8 * part), error);
    return true;
  }
  void deny() override { kernel().perf_error = EACCES; }
  std::unique_ptr<MeterWorld> without_sources() const override {
    return std::make_unique<PerfWorld>(false);
  }

 protected:
  Discovery open(const Environment& environment) override { return discover_perf(environment); }
  void show(std::size_t part, double joules, double) override {
    kernel().perf[{2, static_cast<int>(8 * part)}] =
        static_cast<std::uint64_t>(std::ldexp(joules, 32));
  }

 private:
  const std::string kUnit = "/sys/bus/event_source/devices/power/";
};

class AmdEnergyWorld final : public FilesWorld {
 public:
  explicit AmdEnergyWorld(bool is_there = true) {
    if (!is_there) return;
    write("/sys/class/hwmon/hwmon3/name", "amd_energy");
    write("/sys/class/hwmon/hwmon3/energy1_label", "Esocket0");
    write("/sys/class/hwmon/hwmon3/energy2_label", "Esocket1");
    add_part(180);
    add_part(120);
  }
  std::string name() const override { return "amd_energy"; }
  std::string meter() const override { return "hwmon"; }
  std::unique_ptr<MeterWorld> without_sources() const override {
    return std::make_unique<AmdEnergyWorld>(false);
  }

 protected:
  Discovery open(const Environment& environment) override { return discover_hwmon(environment); }
  void show(std::size_t part, double joules, double) override { write(path(part), micro(joules)); }
  std::string path(std::size_t part) const override {
    return fmt::format("/sys/class/hwmon/hwmon3/energy{}_input", part + 1);
  }
};

class GraceWorld final : public FilesWorld {
 public:
  explicit GraceWorld(bool is_there = true) {
    if (!is_there) return;
    const char* rails[] = {"Module Power Socket 0", "Grace Power Socket 0", "CPU Power Socket 0"};
    for (std::size_t i = 0; i < std::size(rails); ++i) {
      write(folder(i) + "name", "power_meter");
      write(folder(i) + "power1_oem_info", rails[i]);
      write(folder(i) + "power1_average_interval", "50");
      add_part(600 - 200.0 * static_cast<double>(i));
    }
  }
  std::string name() const override { return "grace"; }
  std::string meter() const override { return "hwmon"; }
  std::unique_ptr<MeterWorld> without_sources() const override {
    return std::make_unique<GraceWorld>(false);
  }

 protected:
  Discovery open(const Environment& environment) override { return discover_hwmon(environment); }
  void show(std::size_t part, double, double watts) override { write(path(part), micro(watts)); }
  std::string path(std::size_t part) const override { return folder(part) + "power1_average"; }

 private:
  static std::string folder(std::size_t part) {
    return fmt::format("/sys/class/hwmon/hwmon{}/", part);
  }
};

class CrayWorld final : public FilesWorld {
 public:
  explicit CrayWorld(bool is_there = true) {
    if (!is_there) return;
    write("/sys/cray/pm_counters/raw_scan_hz", "10");
    for (const double watts : {250.0, 300.0, 700.0, 60.0}) add_part(watts);
  }
  std::string name() const override { return "pm_counters"; }
  std::unique_ptr<MeterWorld> without_sources() const override {
    return std::make_unique<CrayWorld>(false);
  }

 protected:
  Discovery open(const Environment& environment) override {
    return discover_pm_counters(environment);
  }
  void show(std::size_t part, double joules, double) override {
    write(path(part), fmt::format("{:.0f} J 1644940393293043 us", std::floor(joules)));
  }
  std::string path(std::size_t part) const override {
    constexpr const char* kFiles[] = {"accel0_energy", "cpu_energy", "energy", "memory_energy"};
    return std::string("/sys/cray/pm_counters/") + kFiles[part];
  }
};

class IpmiWorld final : public MeterWorld {
 public:
  explicit IpmiWorld(bool is_there = true) {
    if (!is_there) return;
    write("/dev/ipmi0", "");
    add_part(420);
    kernel().on_ioctl = [this](unsigned long request, void* argument) {
      return request == IPMICTL_SEND_COMMAND ? send(*static_cast<ipmi_req*>(argument))
                                             : receive(*static_cast<ipmi_recv*>(argument));
    };
  }
  std::string name() const override { return "ipmi"; }
  bool fail(std::size_t, int error) override {
    kernel().fail_path("/dev/ipmi0", error);
    return true;
  }
  void deny() override { fail(0, EACCES); }
  std::unique_ptr<MeterWorld> without_sources() const override {
    return std::make_unique<IpmiWorld>(false);
  }

 protected:
  Discovery open(const Environment& environment) override { return discover_ipmi(environment); }
  void show(std::size_t, double, double watts) override { shown_w_ = static_cast<unsigned>(watts); }

 private:
  int send(const ipmi_req& request) {
    const bool is_right = request.msg.netfn == 0x2c && request.msg.cmd == 0x02 &&
                          request.msg.data_len == 4 && request.msg.data[0] == 0xdc &&
                          request.msg.data[1] == 0x01;
    if (!is_right) return -EINVAL;
    asked_id_ = request.msgid;
    return 0;
  }
  int receive(ipmi_recv& received) {
    if (asked_id_ == 0) return -EAGAIN;
    std::array<unsigned char, 18> answer{};
    answer[1] = 0xdc;
    answer[2] = static_cast<unsigned char>(shown_w_ % 256);
    answer[3] = static_cast<unsigned char>(shown_w_ / 256);
    answer[17] = 0x40;
    std::memcpy(received.msg.data, answer.data(), answer.size());
    received.msg.data_len = answer.size();
    received.msgid = std::exchange(asked_id_, 0);
    return 0;
  }

  unsigned shown_w_ = 0;
  long asked_id_ = 0;
};

// The state of fake_nvml.c.
struct FakeBoard {
  unsigned long long energy_mj;
  unsigned power_mw;
  int energy_error;
};

class NvmlWorld final : public MeterWorld {
 public:
  explicit NvmlWorld(bool is_there = true) : is_there_(is_there) {
    if (!is_there) return;
    *library_.function<int*>("fake_nvml_init_error") = 0;
    std::fill_n(boards_, 2, FakeBoard{});
    boards_[1].energy_error = 3;  // not supported: before Volta
    add_part(350);
    add_part(250);
  }
  std::string name() const override { return "nvml"; }
  bool needs_permission() const override { return false; }
  bool fail(std::size_t part, int error) override {
    if (part == 0) boards_[0].energy_error = error == 0 ? 0 : 15;  // the board is lost
    return part == 0;
  }
  void deny() override { *library_.function<int*>("fake_nvml_init_error") = 4; }
  std::unique_ptr<MeterWorld> without_sources() const override {
    return std::make_unique<NvmlWorld>(false);
  }

 protected:
  Discovery open(const Environment& environment) override {
    Environment with_library = environment;
    with_library.nvml_library = is_there_ ? DIAPAUSE_FAKE_NVML : "libnot-there.so.1";
    return discover_nvml(with_library);
  }
  void show(std::size_t part, double joules, double watts) override {
    boards_[part].energy_mj = static_cast<unsigned long long>(joules * 1e3);
    boards_[part].power_mw = static_cast<unsigned>(watts * 1e3);
  }

 private:
  const bool is_there_;
  sys::Library library_ = *sys::Library::open(DIAPAUSE_FAKE_NVML);
  FakeBoard* boards_ = library_.function<FakeBoard*>("fake_nvml_boards");
};

class StreamWorld final : public MeterWorld {
 public:
  explicit StreamWorld(bool is_there = true) {
    if (!is_there) return;
    settings_.stream = root() + "/rails.csv";
    settings_.stream_offset_s = 3600;  // the instrument's clock is an hour behind
    write("/rails.csv", "time_ms, cpu_w, memory_mw, disk_w");
    for (const double watts : {130.0, 25.0, 2.0}) add_part(watts);
  }
  std::string name() const override { return "stream"; }
  bool fail(std::size_t, int error) override {
    kernel().fail_path("/rails.csv", error);
    return true;
  }
  void deny() override { fail(0, EACCES); }
  bool needs_permission() const override { return false; }  // a user's own file
  std::unique_ptr<MeterWorld> without_sources() const override {
    return std::make_unique<StreamWorld>(false);
  }

 protected:
  Discovery open(const Environment& environment) override { return discover_stream(environment); }
  void show(std::size_t part, double, double watts) override {
    cells_ += fmt::format(", {}", part == 1 ? watts * 1000 : watts);
  }
  void end_of_moment() override {
    std::ofstream(root() + "/rails.csv", std::ios::app)
        << fmt::format("{:.3f}", (unix_s() - 3600) * 1000) << cells_ << "\n";
    cells_.clear();
  }

 private:
  std::string cells_;
};

class ReplayWorld final : public MeterWorld {
 public:
  explicit ReplayWorld(bool is_there = true) {
    if (!is_there) return;
    settings_.trace = root() + "/trace.jsonl";
    TraceHead head;
    head.period_s = 0.1;
    for (const Domain domain : {Domain::package, Domain::dram}) {
      Zone zone;
      zone.source = "powercap somewhere";
      zone.domain = domain;
      zone.part = "0";
      head.domains.push_back(zone);
      add_part(domain == Domain::package ? 110 : 20);
    }
    write("/trace.jsonl", trace_head_line(head));
    begin_s_ = now_s();
    row_.points.resize(parts());
  }
  std::string name() const override { return "replay"; }
  bool fail(std::size_t, int error) override {
    kernel().fail_path("/trace.jsonl", error);
    return true;
  }
  void deny() override { fail(0, EACCES); }
  bool needs_permission() const override { return false; }
  std::unique_ptr<MeterWorld> without_sources() const override {
    return std::make_unique<ReplayWorld>(false);
  }

 protected:
  Discovery open(const Environment& environment) override { return discover_replay(environment); }
  void show(std::size_t part, double joules, double watts) override {
    const double dt_s = now_s() - begin_s_ - row_.time_s;
    row_.points[part].joules = joules;
    if (watts > 0) row_.points[part].covered_s += dt_s;
  }
  void end_of_moment() override {
    row_.time_s = now_s() - begin_s_;
    std::ofstream(root() + "/trace.jsonl", std::ios::app) << trace_row_line(row_) << "\n";
  }

 private:
  double begin_s_ = 0;
  TraceRow row_;
};

// The generic profile with a TDP of 100 W: zone 0 is the node, and the source of all is /proc/stat.
class ModelWorld final : public FilesWorld {
 public:
  explicit ModelWorld(bool is_there = true) {
    if (!is_there) return;
    add_part(100 + 10 + 2 + 5 + 30);  // package, memory, disk, network, the rest: all busy
  }
  std::string name() const override { return "model"; }
  bool needs_permission() const override { return false; }
  std::unique_ptr<MeterWorld> without_sources() const override {
    return std::make_unique<ModelWorld>(false);
  }

 protected:
  Discovery open(const Environment& environment) override { return discover_model(environment); }
  void show(std::size_t, double, double) override {
    write(path(0), fmt::format("cpu  {:.0f} 0 0 500 0 0 0 0 0 0\ncpu0 0 0 0 0",
                               1e4 + (now_s() - begin_s_) * 400));
  }
  std::string path(std::size_t) const override { return "/proc/stat"; }

 private:
  const double begin_s_ = now_s();
};

template <class World>
std::unique_ptr<MeterWorld> make() {
  return std::make_unique<World>();
}

}  // namespace

std::vector<WorldEntry> all_meter_worlds() {
  constexpr Traits kCounter{.shows_zeros = true, .can_be_set_anew = true, .can_fall_silent = true};
  constexpr Traits kRoundCounter{
      .goes_round = true, .shows_zeros = true, .can_be_set_anew = true, .can_fall_silent = true};
  constexpr Traits kSensor{.shows_zeros = true, .can_fall_silent = true};
  constexpr Traits kTrace{.can_fall_silent = true};
  return {{"powercap", make<PowercapWorld>, kRoundCounter},
          {"perf", make<PerfWorld>, kSensor},  // the kernel never resets its counter
          {"amd_energy", make<AmdEnergyWorld>, kCounter},
          {"grace", make<GraceWorld>, kSensor},
          {"pm_counters", make<CrayWorld>, kCounter},
          {"ipmi", make<IpmiWorld>, kSensor},
          {"nvml", make<NvmlWorld>, kCounter},
          {"stream", make<StreamWorld>, kSensor},
          {"replay", make<ReplayWorld>, kTrace},
          {"model", make<ModelWorld>, {}}};
}

std::vector<WorldEntry> meter_worlds_with(bool Traits::*trait) {
  std::vector<WorldEntry> worlds = all_meter_worlds();
  std::erase_if(worlds, [trait](const WorldEntry& world) { return !(world.traits.*trait); });
  return worlds;
}

}  // namespace diapause::energy
