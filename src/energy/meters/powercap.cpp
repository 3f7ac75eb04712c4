// RAPL through /sys/class/powercap: Intel and AMD. One zone for each package and each of its parts. Their numbers
// change when a zone comes or goes (psys), so what a zone is stands in its file `name` only.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "energy/meters/registry.hpp"
#include "sys/value_file.hpp"

namespace diapause::energy {
namespace {

constexpr const char* kFolder = "/sys/class/powercap";
// How often a zone that has gone is looked for.
constexpr double kSearchAgainS = 1;
// Twice the largest server processors of today and more: a counter that was set to 0 looks like megawatts.
constexpr double kMostW = 5000;
constexpr std::uint64_t kMirrorUj = 1000000;

struct Found {
  Domain domain;
  std::string part;
  std::string directory;
  bool is_mmio;
};

// "package-1" is part "1", and "package-1-die-0" part "1/0".
std::optional<std::string> package_part(std::string_view name) {
  constexpr std::string_view kPackage = "package-";
  if (!name.starts_with(kPackage)) return std::nullopt;
  std::string part(name.substr(kPackage.size()));
  if (const std::size_t die = part.find("-die-"); die != std::string::npos) part.replace(die, 5, "/");
  return part;
}

std::string package_of(const std::string& part) { return part.substr(0, part.find('/')); }

std::optional<Domain> subdomain(std::string_view name) {
  if (name == "core") return Domain::core;
  if (name == "uncore") return Domain::uncore;
  if (name == "dram") return Domain::dram;
  return std::nullopt;
}

// Zones of the same counters by another way.
void remove_duplicates(std::vector<Found>& found) {
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.is_mmio < b.is_mmio; });
  std::vector<Found> unique;
  for (Found& zone : found) {
    const bool known = std::any_of(unique.begin(), unique.end(), [&](const Found& other) {
      return other.domain == zone.domain && other.part == zone.part;
    });
    if (!known) unique.push_back(std::move(zone));
  }
  found = std::move(unique);
}

class Tree {
 public:
  Tree(sys::Kernel& kernel, std::string folder) : kernel_(kernel), folder_(std::move(folder)) {}

  // Every zone that there is, whether it can be read or not.
  std::vector<Found> zones() const {
    std::vector<Found> found;
    const auto names = sys::list_names(kernel_, folder_);
    if (!names) return found;
    for (const std::string& name : *names) {
      const bool is_mmio = name.starts_with("intel-rapl-mmio:");
      if (!is_mmio && !name.starts_with("intel-rapl:")) continue;
      // "intel-rapl:0" is a package or psys, "intel-rapl:0:1" a part of it.
      if (std::count(name.begin(), name.end(), ':') == 1) add_package(name, is_mmio, *names, found);
    }
    remove_duplicates(found);
    return found;
  }

 private:
  std::string name_of(const std::string& directory) const {
    return sys::read_value(kernel_, folder_ + "/" + directory + "/name").value_or("");
  }

  void add_package(const std::string& directory, bool is_mmio, const std::vector<std::string>& names,
                   std::vector<Found>& found) const {
    const std::string name = name_of(directory);
    if (name == "psys") found.push_back({Domain::psys, "", directory, is_mmio});
    const auto part = package_part(name);
    if (!part) return;
    found.push_back({Domain::package, *part, directory, is_mmio});
    for (const std::string& below : names) {
      if (!below.starts_with(directory + ":")) continue;
      if (const auto domain = subdomain(name_of(below))) found.push_back({*domain, *part, below, is_mmio});
    }
  }

  sys::Kernel& kernel_;
  std::string folder_;
};

class Powercap final : public Meter {
 public:
  Powercap(sys::Kernel& kernel, std::string folder) : kernel_(kernel), folder_(folder), tree_(kernel, folder) {}

  std::vector<Obstacle> find_zones() {
    std::vector<Obstacle> obstacles;
    for (const Found& found : tree_.zones()) {
      if (Status added = add(found); !added)
        obstacles.push_back({"powercap " + found.directory, advice(added.error())});
    }
    remove_mirrors(obstacles);
    return obstacles;
  }

  std::string_view name() const override { return "powercap"; }
  const std::vector<Zone>& zones() const override { return zones_; }

  void read(double now_s, std::vector<Reading>& out) override {
    for (std::size_t i = 0; i < files_.size(); ++i) {
      auto count = files_[i].number();
      if (!count) {
        reopen(now_s);
        count = files_[i].number();
      }
      out.push_back({i, now_s, std::move(count)});
    }
  }

 private:
  static std::string advice(const Error& error) {
    if (error.code != Code::denied) return error.message;
    return error.message + ". Only root may read it: run `chmod a+r` on it as root, or let a udev rule do so at boot";
  }

  Status add(const Found& found) {
    const std::string directory = folder_ + "/" + found.directory;
    DIAPAUSE_TRY_ASSIGN(auto file, sys::ValueFile::open(kernel_, directory + "/energy_uj"));
    DIAPAUSE_TRY(file.number());
    DIAPAUSE_TRY_ASSIGN(const std::uint64_t range, sys::read_number(kernel_, directory + "/max_energy_range_uj"));
    Zone zone;
    zone.source = "powercap " + found.directory;
    zone.domain = found.domain;
    zone.part = found.part;
    zone.range = range;
    zone.most_w = kMostW;
    // The counter has 32 bits, so that its range tells its step: 61 uJ on most packages, 15 uJ on much memory.
    zone.resolution_j = std::max(1e-6, 1e-6 * static_cast<double>(range) / 4294967295.0);
    zones_.push_back(std::move(zone));
    files_.push_back(std::move(file));
    return {};
  }

  // AMD shows a package's counter once for each of its dies. Counters of their own would be joules apart soon after
  // boot.
  bool is_mirror(std::size_t zone, std::size_t first) const {
    if (zones_[zone].domain != zones_[first].domain) return false;
    if (package_of(zones_[zone].part) != package_of(zones_[first].part)) return false;
    const auto a = files_[first].number();
    const auto b = files_[zone].number();
    return a && b && std::max(*a, *b) - std::min(*a, *b) < kMirrorUj;
  }

  void remove_mirrors(std::vector<Obstacle>& obstacles) {
    for (std::size_t i = 0; i < zones_.size(); ++i) {
      for (std::size_t j = i + 1; j < zones_.size();) {
        if (!is_mirror(j, i)) {
          ++j;
          continue;
        }
        obstacles.push_back({zones_[j].source, "shows the counter of " + zones_[i].source + " once more"});
        zones_.erase(zones_.begin() + static_cast<std::ptrdiff_t>(j));
        files_.erase(files_.begin() + static_cast<std::ptrdiff_t>(j));
      }
    }
  }

  // Zones come back under other numbers after the kernel module was loaded again.
  void reopen(double now_s) {
    if (now_s < searched_s_ + kSearchAgainS) return;
    searched_s_ = now_s;
    for (const Found& found : tree_.zones()) {
      for (std::size_t i = 0; i < zones_.size(); ++i) {
        if (zones_[i].domain != found.domain || zones_[i].part != found.part) continue;
        auto file = sys::ValueFile::open(kernel_, folder_ + "/" + found.directory + "/energy_uj");
        if (file) files_[i] = std::move(*file);
      }
    }
  }

  sys::Kernel& kernel_;
  std::string folder_;
  Tree tree_;
  std::vector<Zone> zones_;
  std::vector<sys::ValueFile> files_;  // of each zone
  double searched_s_ = -kSearchAgainS;
};

}  // namespace

Discovery discover_powercap(const Surroundings& surroundings) {
  auto meter = std::make_unique<Powercap>(surroundings.kernel, surroundings.path(kFolder));
  auto obstacles = meter->find_zones();
  if (meter->zones().empty()) meter.reset();
  return {std::move(meter), std::move(obstacles)};
}

}  // namespace diapause::energy
