// Reads RAPL through the kernel's performance counters power/energy-*. The kernel takes care of
// counters that go round.
#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "energy/meters/registry.hpp"
#include "sys/perf_counter.hpp"
#include "sys/value_file.hpp"

namespace diapause::energy {
namespace {

constexpr const char* kUnit = "/sys/bus/event_source/devices/power";
constexpr std::string_view kPerfHelp =
    "Set kernel.perf_event_paranoid to 0 or lower, or give the program CAP_PERFMON";
constexpr double kMostEventW = 5000;

struct Event {
  std::string_view name;
  Domain domain;
};
constexpr Event kEvents[] = {{"energy-psys", Domain::psys},
                             {"energy-pkg", Domain::package},
                             {"energy-cores", Domain::core},
                             {"energy-gpu", Domain::uncore},
                             {"energy-ram", Domain::dram}};

// The text "0,18" or "0-1" names processors. Everything after an unknown character is left out.
std::vector<int> parse_cpus(const std::string& text) {
  constexpr int kMost = 4096;  // processors in a range
  std::vector<int> cpus;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at != end;) {
    int first = 0;
    auto parsed = std::from_chars(at, end, first);
    int last = first;
    if (parsed.ec == std::errc() && parsed.ptr != end && *parsed.ptr == '-') {
      parsed = std::from_chars(parsed.ptr + 1, end, last);
    }
    if (parsed.ec != std::errc()) break;
    for (int cpu = first; cpu <= last && cpu - first < kMost; ++cpu) cpus.push_back(cpu);
    if (parsed.ptr == end || *parsed.ptr != ',') break;
    at = parsed.ptr + 1;
  }
  return cpus;
}

// The text is like "event=0x02".
std::optional<std::uint64_t> parse_event(const std::string& text) {
  constexpr std::string_view kPrefix = "event=0x";
  if (!text.starts_with(kPrefix)) return std::nullopt;
  std::uint64_t config = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data() + kPrefix.size(), end, config, 16);
  return error == std::errc() && at == end ? std::optional(config) : std::nullopt;
}

// Returns the joules of one count, or 0 if the text is no number.
double parse_scale(const std::string& text) {
  double joules = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), joules);
  return error == std::errc() ? joules : 0;
}

class Perf final : public Meter {
 public:
  Perf(sys::Kernel& kernel, std::string root)
      : kernel_(kernel), root_(std::move(root)), unit_(root_ + kUnit) {}

  std::vector<Obstacle> find_zones() {
    const auto type = sys::read_number(kernel_, unit_ + "/type");
    if (!type) return {};  // no such unit
    const std::vector<int> cpus =
        parse_cpus(sys::read_value(kernel_, unit_ + "/cpumask").value_or(""));
    for (const Event& event : kEvents) {
      const std::string file = unit_ + "/events/" + std::string(event.name);
      const auto config = parse_event(sys::read_value(kernel_, file).value_or(""));
      const double joules = parse_scale(sys::read_value(kernel_, file + ".scale").value_or(""));
      if (!config || !(joules > 0)) continue;
      for (const int cpu : cpus) {
        open(event, static_cast<std::uint32_t>(*type), *config, {joules, cpu});
        if (event.domain == Domain::psys) break;  // one counter serves all packages
      }
    }
    return std::move(obstacles_);
  }

  std::string_view name() const override { return "perf"; }
  const std::vector<Zone>& zones() const override { return zones_; }
  void read(double now_s, std::vector<Reading>& out) override {
    for (std::size_t i = 0; i < counters_.size(); ++i)
      out.push_back({i, now_s, counters_[i].count()});
  }

 private:
  struct Place {
    double joules;
    int cpu;
  };

  void open(const Event& event, std::uint32_t type, std::uint64_t config, Place place) {
    Zone zone;
    zone.source = fmt::format("perf power/{} on processor {}", event.name, place.cpu);
    zone.domain = event.domain;
    if (event.domain != Domain::psys) zone.part = part_of(place.cpu);
    zone.unit = place.joules;
    zone.resolution_j =
        std::ldexp(1.0, -14);  // the counters below have steps of 61 uJ on most machines
    zone.range = std::numeric_limits<std::uint64_t>::max();
    zone.most_w = kMostEventW;
    zone.accuracy = rapl_accuracy(event.domain);
    auto counter = sys::PerfCounter::open(kernel_, type, config, place.cpu, zone.source);
    if (!counter) {
      const Error& error = counter.error();
      obstacles_.push_back({zone.source, error.code == Code::denied
                                             ? fmt::format("{}. {}", error.message, kPerfHelp)
                                             : error.message});
      return;
    }
    zones_.push_back(std::move(zone));
    counters_.push_back(std::move(*counter));
  }

  // The kernel names one processor of each die.
  std::string part_of(int cpu) {
    const std::string topology =
        fmt::format("{}/sys/devices/system/cpu/cpu{}/topology/", root_, cpu);
    const auto package = sys::read_number(kernel_, topology + "physical_package_id");
    const auto die = sys::read_number(kernel_, topology + "die_id");
    if (!package) return fmt::format("processor {}", cpu);
    return die && *die > 0 ? fmt::format("{}/{}", *package, *die) : fmt::format("{}", *package);
  }

  sys::Kernel& kernel_;
  std::string root_;
  std::string unit_;
  std::vector<Zone> zones_;
  std::vector<sys::PerfCounter> counters_;  // one for each zone
  std::vector<Obstacle> obstacles_;
};

}  // namespace

Discovery discover_perf(const Environment& environment) {
  auto meter = std::make_unique<Perf>(environment.kernel, environment.settings.root);
  auto obstacles = meter->find_zones();
  if (meter->zones().empty()) meter.reset();
  return {std::move(meter), std::move(obstacles)};
}

}  // namespace diapause::energy
