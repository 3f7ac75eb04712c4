// A profile is a machine in numbers, for power that no counter measures. docs/energy.md has the
// equations, and profiles/*.toml the machines. Every number says where it is from.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "energy/meter.hpp"

namespace diapause::energy {

struct Number {
  double value = 0;
  std::string source;  // "table 6, HDC, original", or "assumed: ..." where nobody has measured it
};

// This is P(f) / P(base clock) = a f^b + c with f in GHz, the form in which published fits are
// given.
struct PowerCurve {
  Number a, b, c;
  double at(double ghz) const;
};

struct DomainModel {
  Domain domain = Domain::other;  // `other` is the rest of the node
  Number idle_w;
  Number busy_w;    // added to idle when all processors are busy at the base clock
  Number j_per_gb;  // added for each 10^9 bytes moved: dram through memory, disk and network
                    // through their devices
};

struct Profile {
  std::string name;
  std::string machine;  // in words
  std::string origin;   // the path of the file, or "built in"
  std::optional<Number> base_clock_ghz, least_clock_ghz, tdp_w;
  std::optional<Number> error;  // how far modelled energy may be off, either way, as a share of it
  std::vector<DomainModel> domains;  // the parts of one node, which add up to it
  std::optional<PowerCurve> curve;   // power of the package when the processors are busy
  // Power of a single core in that phase: "compress", "write".
  std::map<std::string, PowerCurve> phases;
  std::map<std::string, Number> rates;  // "storage_write_mb_s", "network_mb_s"
};

// This is what a node does at the moment.
struct Activity {
  double utilisation = 0;  // mean of all processors, 0 to 1
  double ghz = 0;          // mean clock; 0 means unknown, and the base clock is taken
  double memory_gb_s = 0;
  double disk_gb_s = 0;
  double network_gb_s = 0;
};

// Returns idle + busy * utilisation + j_per_gb * rate. The package's busy power follows the curve,
// so that with all processors busy at f it draws (idle + busy) * curve(f) / curve(base).
double model_watts(const Profile& profile, const DomainModel& domain, const Activity& activity);

// A parameter is a number of a profile with the key that it has in the file. parameters_of()
// returns all of them, for people, and for a file again.
struct Parameter {
  std::string key;  // "domain.package.idle_w"
  double value;
  std::string source;
};
std::vector<Parameter> parameters_of(const Profile& profile);
// Returns the file that gives this profile.
std::string profile_toml(const Profile& profile);

// Returns the names of the profiles that are built in.
std::vector<std::string_view> built_in_profiles();
// Returns the TOML of one of them; it is empty if there is none of that name.
std::string_view built_in_profile(std::string_view name);

// `cpus` is the number of processors that this machine has, for numbers that are given for each of
// them. `tdp_w` is what the user says of this machine, instead of the profile's; 0 says nothing.
// Code::config names file, line and key.
struct MachineFacts {
  unsigned cpus = 1;
  double tdp_w = 0;
};
Result<Profile> parse_profile(std::string_view text, const std::string& origin,
                              const MachineFacts& facts);

}  // namespace diapause::energy
