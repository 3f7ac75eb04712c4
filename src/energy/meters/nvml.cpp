// Reads NVIDIA's boards through the driver's library, which is loaded if it is installed. Boards
// since Volta count energy; the power of older ones is integrated. A slice of a board (MIG) has no
// meter of its own.
#include <fmt/core.h>

#include <array>

#include "energy/meters/registry.hpp"
#include "sys/library.hpp"

namespace diapause::energy {
namespace {

constexpr double kEnergyUpdateS = 0.1;
constexpr double kPowerUpdateS = 0.1;
constexpr double kMostGpuW = 10000;

// This is the part of the library's interface that is used here.
using Device = void*;
struct Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_text)(int) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*device)(unsigned, Device*) = nullptr;
  int (*energy_mj)(Device, unsigned long long*) = nullptr;
  int (*power_mw)(Device, unsigned*) = nullptr;

  static Functions of(const sys::Library& library) {
    Functions functions;
    functions.init = library.function<decltype(init)>("nvmlInit_v2");
    functions.shutdown = library.function<decltype(shutdown)>("nvmlShutdown");
    functions.error_text = library.function<decltype(error_text)>("nvmlErrorString");
    functions.count = library.function<decltype(count)>("nvmlDeviceGetCount_v2");
    functions.device = library.function<decltype(device)>("nvmlDeviceGetHandleByIndex_v2");
    functions.energy_mj =
        library.function<decltype(energy_mj)>("nvmlDeviceGetTotalEnergyConsumption");
    functions.power_mw = library.function<decltype(power_mw)>("nvmlDeviceGetPowerUsage");
    return functions;
  }
  bool are_complete() const {
    return init && shutdown && error_text && count && device && energy_mj && power_mw;
  }
};

class Nvml final : public Meter {
 public:
  Nvml(sys::Library library, const Functions& functions)
      : library_(std::move(library)), functions_(functions) {}
  ~Nvml() override {
    if (is_open_) functions_.shutdown();
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::vector<Obstacle> find_boards() {
    if (const int error = functions_.init(); error != 0)
      return {{"nvml", functions_.error_text(error)}};
    is_open_ = true;
    std::vector<Obstacle> obstacles;
    unsigned count = 0;
    if (const int error = functions_.count(&count); error != 0)
      return {{"nvml", functions_.error_text(error)}};
    for (unsigned i = 0; i < count; ++i) {
      Device device = nullptr;
      int error = functions_.device(i, &device);
      if (error == 0) error = add(i, device);
      if (error != 0)
        obstacles.push_back({fmt::format("nvml board {}", i), functions_.error_text(error)});
    }
    return obstacles;
  }

  std::string_view name() const override { return "nvml"; }
  const std::vector<Zone>& zones() const override { return zones_; }

  void read(double now_s, std::vector<Reading>& out) override {
    for (std::size_t i = 0; i < zones_.size(); ++i) {
      unsigned long long value = 0;
      const int error = zones_[i].quantity == Quantity::energy
                            ? functions_.energy_mj(devices_[i], &value)
                            : read_power(devices_[i], value);
      if (error == 0) {
        out.push_back({i, now_s, std::uint64_t{value}});
      } else {
        out.push_back(
            {i, now_s, fail(Code::io, zones_[i].source + ": " + functions_.error_text(error))});
      }
    }
  }

 private:
  int read_power(Device device, unsigned long long& value) const {
    unsigned milliwatts = 0;
    const int error = functions_.power_mw(device, &milliwatts);
    value = milliwatts;
    return error;
  }

  // Returns 0, or the error for which the board tells neither energy nor power.
  int add(unsigned index, Device device) {
    unsigned long long value = 0;
    Zone zone;
    zone.domain = Domain::gpu;
    zone.part = fmt::format("{}", index);
    zone.unit = 1e-3;
    zone.most_w = kMostGpuW;
    if (functions_.energy_mj(device, &value) == 0) {
      zone.source = fmt::format("nvml energy of board {}", index);
      zone.update_s = kEnergyUpdateS;
    } else {
      if (const int error = read_power(device, value); error != 0) return error;
      zone.source = fmt::format("nvml power of board {}", index);
      zone.quantity = Quantity::power;
      zone.update_s = kPowerUpdateS;
    }
    zone.resolution_j = zone.unit;
    zone.accuracy = {
        0.05,
        "NVML's manual: 5 % of the power, for Fermi and Kepler; of later ones it says nothing"};
    zones_.push_back(std::move(zone));
    devices_.push_back(device);
    return 0;
  }

  sys::Library library_;
  const Functions functions_;
  bool is_open_ = false;
  std::vector<Zone> zones_;
  std::vector<Device> devices_;  // one for each zone
};

}  // namespace

Discovery discover_nvml(const Environment& environment) {
  auto library = sys::Library::open(environment.nvml_library);
  if (!library) return {};  // no NVIDIA driver is the usual case
  const Functions functions = Functions::of(*library);
  if (!functions.are_complete())
    return {nullptr, {{"nvml", environment.nvml_library + " is too old"}}};
  auto meter = std::make_unique<Nvml>(std::move(*library), functions);
  auto obstacles = meter->find_boards();
  if (meter->zones().empty()) meter.reset();
  return {std::move(meter), std::move(obstacles)};
}

}  // namespace diapause::energy
