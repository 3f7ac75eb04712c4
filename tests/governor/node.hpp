// A node to govern in tests: a tree of files as /sys has them, and a state directory.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "config/settings.hpp"
#include "governor/controls.hpp"
#include "governor/governor.hpp"

namespace diapause::governor_test {

inline constexpr const char* kBoot = "boot-1";

// A tree that is removed with everything in it.
class Node {
 public:
  Node();
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  std::string sysfs() const { return root_ / "sys"; }
  std::string state() const { return root_ / "state"; }
  std::string path(const std::string& relative) const { return root_ / "sys" / relative; }

  // Makes the file with all directories above it; a new text replaces the old one.
  void put(const std::string& relative, const std::string& text) const;
  std::string get(const std::string& relative) const;  // "(none)" if there is none
  void remove(const std::string& relative) const;
  // From here on the file reads "65536" and cannot be written to, by root either.
  void refuse(const std::string& relative) const;

  // Adds one policy for each processor, with a base clock of 2 GHz and limits of 0.8 and 3 GHz.
  void add_cpufreq(unsigned cpus) const;
  static std::string limit_of(unsigned cpu);  // a relative path
  // Adds a package of these processors, with core, uncore and memory zones and a second door, as on
  // Intel.
  void add_powercap(unsigned package, const std::vector<unsigned>& cpus) const;

  governor::Controls controls(const std::string& boot = kBoot) const;
  std::vector<std::string> log;
  LogSink sink();

 private:
  std::filesystem::path root_;
};

governor::Owner owner(std::int64_t process);

}  // namespace diapause::governor_test
