// A machine for each meter, made of files and fake devices in a directory of its own: parts that
// use energy at a known power, and whose sources go wrong when a test says so.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "conformance/device_kernel.hpp"
#include "energy/meters/registry.hpp"

namespace diapause::energy {

class MeterWorld {
 public:
  MeterWorld();
  virtual ~MeterWorld();
  MeterWorld(const MeterWorld&) = delete;
  MeterWorld& operator=(const MeterWorld&) = delete;

  // Time passes, and each part uses energy.
  void advance(double seconds);
  double now_s() const { return now_s_; }
  std::size_t parts() const { return watts_.size(); }
  void set_watts(std::size_t part, double watts) { watts_[part] = watts; }
  double watts(std::size_t part) const { return watts_[part]; }

  // The source of a part gives nothing new: a counter stands still, a sensor shows 0, a stream has
  // no lines.
  void silence(std::size_t part, bool is_silent) { is_silent_[part] = is_silent; }
  // Shows 0 until the next advance().
  void show_zero(std::size_t part) { show(part, 0, 0); }
  // The counter is set to a small value, as by a driver that is loaded again.
  void set_anew(std::size_t part) { joules_[part] = 1; }

  Discovery discover();
  DeviceKernel& kernel() { return kernel_; }

  // Properties of the source.
  virtual std::string name() const = 0;
  virtual std::string meter() const { return name(); }
  virtual double range_j() const { return 0; }  // range of its counters; 0 if they do not go round
  virtual bool needs_permission() const { return true; }
  // Lets reads of this part fail from now on; 0 ends that. Returns false if they cannot fail.
  virtual bool fail(std::size_t part, int error) = 0;
  virtual void deny() = 0;  // nothing can be opened
  virtual std::unique_ptr<MeterWorld> without_sources() const = 0;

 protected:
  virtual Discovery open(const Environment& environment) = 0;
  // Makes the source show this.
  virtual void show(std::size_t part, double joules, double watts) = 0;
  virtual void end_of_moment() {}  // all parts were shown

  void add_part(double watts);
  void write(const std::string& path, const std::string& text) const;  // the path is below the root
  std::string root() const { return root_; }
  double unix_s() const { return unix_s_; }

  config::EnergySettings settings_;

 private:
  std::filesystem::path root_;
  DeviceKernel kernel_;
  Profile profile_;
  std::atomic<std::uint64_t> moved_bytes_{0};
  double now_s_;
  double unix_s_;
  std::vector<double> watts_;
  std::vector<double> joules_;
  std::vector<bool> is_silent_;
};

// Laws that not every source can break.
struct Traits {
  bool goes_round = false;
  bool shows_zeros = false;      // single readings of 0 that mean nothing
  bool can_be_set_anew = false;  // a counter that a driver sets to 0
  bool can_fall_silent = false;
};
struct WorldEntry {
  const char* name;
  std::unique_ptr<MeterWorld> (*make)();
  Traits traits;
};
std::vector<WorldEntry> all_meter_worlds();
std::vector<WorldEntry> meter_worlds_with(bool Traits::*trait);

}  // namespace diapause::energy
