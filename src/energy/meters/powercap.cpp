// Reads RAPL through /sys/class/powercap on Intel and AMD. There is one zone for each package and
// each of its parts. Their numbers change when a zone comes or goes (psys), so only its file `name`
// says what a zone is.
#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "energy/meters/number_files.hpp"

namespace diapause::energy {
namespace {

constexpr const char* kPowercapFolder = "/sys/class/powercap";
constexpr std::string_view kPowercapHelp =
    "Only root may read it: `chmod a+r` it as root, or let a udev rule do so at each boot";
// This is more than twice what the largest server processors of today draw. A counter that was
// reset to 0 looks like megawatts.
constexpr double kMostZoneW = 4000;
constexpr double kMostDramW = 1000;
// The limits of a processor are means over a second; for moments it draws more.
constexpr double kPeakOverLimit = 1.5;
// Two different counters are joules apart soon after boot.
constexpr std::uint64_t kMirrorUj = 1000000;
constexpr double kSteps = 4294967295;  // steps of a counter of 32 bits until it goes round

// "package-1" is part "1", and "package-1-die-0" part "1/0".
std::optional<std::string> package_part(std::string_view name) {
  constexpr std::string_view kPackage = "package-";
  if (!name.starts_with(kPackage)) return std::nullopt;
  name.remove_prefix(kPackage.size());
  constexpr std::string_view kDie = "-die-";
  const std::size_t die = name.find(kDie);
  if (die == std::string_view::npos) return std::string(name);
  return fmt::format("{}/{}", name.substr(0, die), name.substr(die + kDie.size()));
}

std::string package_of(const std::string& part) { return part.substr(0, part.find('/')); }

std::optional<Domain> subdomain(std::string_view name) {
  if (name == "core") return Domain::core;
  if (name == "uncore") return Domain::uncore;
  if (name == "dram") return Domain::dram;
  return std::nullopt;
}

class Tree {
 public:
  Tree(sys::Kernel& kernel, std::string folder) : kernel_(kernel), folder_(std::move(folder)) {}

  std::vector<NumberFile> search() {
    found_.clear();
    names_ = sys::list_names(kernel_, folder_).value_or(std::vector<std::string>());
    add_packages("intel-rapl:");
    add_packages("intel-rapl-mmio:");  // the same counters, reached in another way
    return std::move(found_);
  }

 private:
  // "intel-rapl:0" is a package or psys, and "intel-rapl:0:1" is a part of it.
  void add_packages(std::string_view prefix) {
    for (const std::string& name : names_) {
      if (!name.starts_with(prefix) || name.find(':', prefix.size()) != std::string::npos) continue;
      const std::string what = text(name, "name");
      if (what == "psys") add(Domain::psys, "", name);
      const auto part = package_part(what);
      if (!part) continue;
      add(Domain::package, *part, name);
      for (const std::string& below : names_) {
        if (!below.starts_with(name + ":")) continue;
        if (const auto domain = subdomain(text(below, "name"))) add(*domain, *part, below);
      }
    }
  }

  void add(Domain domain, const std::string& part, const std::string& directory) {
    NumberFile file;
    file.path = folder_ + "/" + directory + "/energy_uj";
    file.zone.source = "powercap " + directory;
    file.zone.domain = domain;
    file.zone.part = part;
    file.zone.range =
        sys::read_number(kernel_, folder_ + "/" + directory + "/max_energy_range_uj").value_or(0);
    // The range tells the step: 61 uJ on most packages, 15 uJ on much memory.
    file.zone.resolution_j = std::max(1e-6, 1e-6 * static_cast<double>(file.zone.range) / kSteps);
    file.zone.most_w = domain == Domain::dram ? kMostDramW : kMostZoneW;
    file.zone.peak_w = kPeakOverLimit * highest_limit_w(directory);
    file.zone.accuracy = rapl_accuracy(domain);
    const bool is_known = std::any_of(found_.begin(), found_.end(), [&](const NumberFile& other) {
      return other.zone.domain == domain && (other.zone.part == part || is_mirror(other, file));
    });
    if (!is_known) found_.push_back(std::move(file));
  }

  // AMD shows a package's counter once for each of its dies.
  bool is_mirror(const NumberFile& a, const NumberFile& b) const {
    if (package_of(a.zone.part) != package_of(b.zone.part)) return false;
    const auto first = sys::read_number(kernel_, a.path);
    const auto second = sys::read_number(kernel_, b.path);
    return first && second && std::max(*first, *second) - std::min(*first, *second) < kMirrorUj;
  }

  // Returns 0 if the zone tells no limit.
  double highest_limit_w(const std::string& directory) const {
    std::uint64_t highest_uw = 0;
    for (const char* const file : {"constraint_0_max_power_uw", "constraint_1_max_power_uw"}) {
      const auto limit_uw = sys::read_number(kernel_, folder_ + "/" + directory + "/" + file);
      if (limit_uw) highest_uw = std::max(highest_uw, *limit_uw);
    }
    return 1e-6 * static_cast<double>(highest_uw);
  }

  std::string text(const std::string& directory, const char* file) const {
    return sys::read_value(kernel_, folder_ + "/" + directory + "/" + file).value_or("");
  }

  sys::Kernel& kernel_;
  std::string folder_;
  std::vector<std::string> names_;
  std::vector<NumberFile> found_;
};

}  // namespace

Discovery discover_powercap(const Environment& environment) {
  Tree tree(environment.kernel, environment.path(kPowercapFolder));
  return NumberFiles::open(
      "powercap", environment, [tree]() mutable { return tree.search(); }, kPowercapHelp);
}

}  // namespace diapause::energy
