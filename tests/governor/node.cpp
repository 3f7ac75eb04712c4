#include "governor/node.hpp"

#include <fmt/core.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace diapause::governor_test {

namespace fs = std::filesystem;

Node::Node() {
  // In memory, as /sys and the state directory are: journals are synced often.
  const fs::path memory = "/dev/shm";
  std::string name =
      (fs::exists(memory) ? memory : fs::temp_directory_path()) / "diapause-governor-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
  root_ = name;
  fs::create_directories(root_ / "sys");
}

Node::~Node() {
  // A watchdog whose job has ended may still be at work.
  std::error_code error;
  for (int i = 0; i < 100 && fs::exists(root_); ++i) fs::remove_all(root_, error);
}

void Node::put(const std::string& relative, const std::string& text) const {
  const fs::path path = root_ / "sys" / relative;
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text << "\n";
}

std::string Node::get(const std::string& relative) const {
  std::ifstream file(root_ / "sys" / relative);
  std::string line;
  return std::getline(file, line) ? line : "(none)";
}

void Node::remove(const std::string& relative) const { fs::remove_all(root_ / "sys" / relative); }

void Node::refuse(const std::string& relative) const {
  remove(relative);
  fs::create_symlink("/proc/sys/kernel/ngroups_max", root_ / "sys" / relative);
}

std::string Node::limit_of(unsigned cpu) {
  return fmt::format("devices/system/cpu/cpufreq/policy{}/scaling_max_freq", cpu);
}

void Node::add_cpufreq(unsigned cpus) const {
  for (unsigned cpu = 0; cpu < cpus; ++cpu) {
    const std::string policy = fmt::format("devices/system/cpu/cpufreq/policy{}/", cpu);
    put(policy + "affected_cpus", fmt::format("{}", cpu));
    put(policy + "base_frequency", "2000000");
    put(policy + "cpuinfo_min_freq", "800000");
    put(policy + "cpuinfo_max_freq", "3000000");
    put(policy + "scaling_min_freq", "800000");
    put(policy + "scaling_max_freq", "3000000");
    put(policy + "scaling_setspeed", "<unsupported>");
  }
}

void Node::add_powercap(unsigned package, const std::vector<unsigned>& cpus) const {
  const auto zone = [&](const std::string& folder, const std::string& name) {
    const std::string path = "class/powercap/" + folder + "/";
    put(path + "name", name);
    put(path + "constraint_0_name", "long_term");
    put(path + "constraint_0_power_limit_uw", "150000000");
    put(path + "constraint_0_max_power_uw", "150000000");
  };
  const std::string name = fmt::format("package-{}", package);
  zone(fmt::format("intel-rapl:{}", package), name);
  zone(fmt::format("intel-rapl:{}:0", package), "dram");
  zone(fmt::format("intel-rapl-mmio:{}", package), name);
  for (const unsigned cpu : cpus) {
    put(fmt::format("devices/system/cpu/cpu{}/topology/physical_package_id", cpu),
        fmt::format("{}", package));
  }
}

governor::Controls Node::controls(const std::string& boot) const {
  auto controls = governor::Controls::open(sys::real_kernel(), state(), boot);
  if (!controls) throw std::runtime_error(controls.error().message);
  return std::move(*controls);
}

LogSink Node::sink() {
  return [this](Severity, const std::string& message) { log.push_back(message); };
}

governor::Owner owner(std::int64_t process) { return {process, 1, 1}; }

}  // namespace diapause::governor_test
