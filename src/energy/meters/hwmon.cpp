// Reads the sensors of /sys/class/hwmon: counters of AMD sockets, rails of Grace, power meters of
// ACPI, and every other chip that has a power rail. hwmonN is another chip after each boot, so its
// file `name` and its labels say what it is.
#include <algorithm>
#include <charconv>
#include <optional>

#include "energy/meters/number_files.hpp"

namespace diapause::energy {
namespace {

constexpr const char* kHwmonFolder = "/sys/class/hwmon";
constexpr std::string_view kHwmonHelp =
    "`chmod a+r` it as root, or let a udev rule do so at each boot";
// Rails of boards often hang on slow buses, and the kernel waits for them.
constexpr double kBoardUpdateS = 1;

struct Meaning {
  Domain domain = Domain::other;
  std::string part;
};

std::string after(const std::string& text, std::string_view prefix) {
  return text.substr(prefix.size());
}

// A power_meter names the rails of Grace in power1_oem_info. A meter that names nothing covers the
// whole node.
Meaning meaning_of_acpi(const std::string& info) {
  constexpr std::pair<std::string_view, Domain> kRails[] = {
      {"Module Power Socket ", Domain::module},
      {"Grace Power Socket ", Domain::socket},
      {"CPU Power Socket ", Domain::package}};
  for (const auto& [prefix, domain] : kRails) {
    if (info.starts_with(prefix)) return {domain, after(info, prefix)};
  }
  if (info.find("Power Socket") != std::string::npos) return {Domain::other, info};
  return {Domain::node, ""};
}

// The text is "5.0%", or "95.0%" where the firmware tells how much is right and not how much is
// off.
std::optional<double> told_accuracy(const std::string& text) {
  double percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  if (error != std::errc() || !(percent > 0) || percent >= 100) return std::nullopt;
  return (percent > 50 ? 100 - percent : percent) / 100;
}

class Chips {
 public:
  Chips(sys::Kernel& kernel, std::string folder) : kernel_(kernel), folder_(std::move(folder)) {}

  std::vector<NumberFile> search() {
    found_.clear();
    for (const std::string& chip : names(folder_)) {
      const std::string directory = folder_ + "/" + chip;
      const std::string name = text(directory + "/name");
      for (const std::string& file : names(directory)) {
        if (file.starts_with("energy") && file.ends_with("_input"))
          add_energy(name, directory, file);
        if (is_power(file, directory)) add_power(name, directory, file);
      }
    }
    return std::move(found_);
  }

 private:
  std::vector<std::string> names(const std::string& directory) const {
    return sys::list_names(kernel_, directory).value_or(std::vector<std::string>());
  }
  std::string text(const std::string& path) const {
    return sys::read_value(kernel_, path).value_or("");
  }

  // The file is power1_average or power1_input. Where both exist, they show the same rail.
  bool is_power(const std::string& file, const std::string& directory) const {
    if (!file.starts_with("power")) return false;
    if (file.ends_with("_average")) return true;
    if (!file.ends_with("_input")) return false;
    return !sys::ValueFile::open(kernel_, directory + "/" + stem(file) + "_average");
  }

  static std::string stem(const std::string& file) { return file.substr(0, file.find('_')); }

  // amd_energy has "Esocket0", and "Ecore000" for each core, which is contained in the socket.
  void add_energy(const std::string& name, const std::string& directory, const std::string& file) {
    const std::string label = text(directory + "/" + stem(file) + "_label");
    constexpr std::string_view kSocket = "Esocket";
    if (name != "amd_energy") {
      add(name, directory, file, {Domain::other, label_or(label, name, file)});
    } else if (label.starts_with(kSocket)) {
      add(name, directory, file, {Domain::package, after(label, kSocket)});
    }
  }

  void add_power(const std::string& name, const std::string& directory, const std::string& file) {
    Meaning meaning{Domain::other,
                    label_or(text(directory + "/" + stem(file) + "_label"), name, file)};
    // A graphics unit in a processor has no limit of its own, and its value may be that of the
    // whole processor.
    const bool is_board = !text(directory + "/" + stem(file) + "_cap").empty();
    if (name == "amdgpu" && is_board) meaning = {Domain::gpu, "amdgpu"};
    if (name == "power_meter")
      meaning = meaning_of_acpi(text(directory + "/" + stem(file) + "_oem_info"));
    NumberFile& added = add(name, directory, file, meaning);
    added.zone.quantity = Quantity::power;
    added.zone.update_s = kBoardUpdateS;
    const auto interval_ms =
        sys::read_number(kernel_, directory + "/" + stem(file) + "_average_interval");
    if (interval_ms && *interval_ms > 0)
      added.zone.update_s = static_cast<double>(*interval_ms) / 1000;
    if (const auto share = told_accuracy(text(directory + "/" + stem(file) + "_accuracy"))) {
      added.zone.accuracy = {*share, "told by the firmware: " + stem(file) + "_accuracy"};
    }
  }

  // Names of chips and labels need not be unique, but domains and parts must be.
  NumberFile& add(const std::string& name, const std::string& directory, const std::string& file,
                  Meaning meaning) {
    const auto is_taken = [&] {
      return std::any_of(found_.begin(), found_.end(), [&](const NumberFile& other) {
        return other.zone.domain == meaning.domain && other.zone.part == meaning.part;
      });
    };
    const std::string part = meaning.part;
    for (int i = 2; is_taken(); ++i) meaning.part = part + "#" + std::to_string(i);
    NumberFile added;
    added.path = directory + "/" + file;
    added.zone.source = "hwmon " + name + " " + file;
    added.zone.domain = meaning.domain;
    added.zone.part = meaning.part;
    added.zone.resolution_j = added.zone.unit;
    if (meaning.domain == Domain::package && name == "amd_energy")
      added.zone.accuracy = rapl_accuracy(Domain::package);
    found_.push_back(std::move(added));
    return found_.back();
  }

  static std::string label_or(const std::string& label, const std::string& name,
                              const std::string& file) {
    return name + " " + (label.empty() ? stem(file) : label);
  }

  sys::Kernel& kernel_;
  std::string folder_;
  std::vector<NumberFile> found_;
};

}  // namespace

Discovery discover_hwmon(const Environment& environment) {
  Chips chips(environment.kernel, environment.path(kHwmonFolder));
  return NumberFiles::open(
      "hwmon", environment, [chips]() mutable { return chips.search(); }, kHwmonHelp);
}

}  // namespace diapause::energy
