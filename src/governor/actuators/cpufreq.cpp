#include "governor/actuators/cpufreq.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "governor/actuators/numbers.hpp"
#include "sys/control_file.hpp"
#include "sys/value_file.hpp"

namespace diapause::governor {
namespace {

class Cpufreq final : public Planner {
 public:
  Cpufreq(sys::Kernel& kernel, std::string sysfs)
      : kernel_(kernel), cpus_(std::move(sysfs) + "/devices/system/cpu") {}

  Traits traits() const override {
    return {.name = "cpufreq",
            .sets_clock = true,
            .slows_cores = true,
            .is_real = true,
            .limits_turbo = true};
  }
  Status check(const Where& where) override {
    DIAPAUSE_TRY(plan(where, 1));
    return {};
  }
  Result<Plan> plan(const Where& where, double ratio) override;

 private:
  std::optional<double> base_khz(const std::string& policy, std::uint32_t cpu) const;
  Result<std::string> control_of(const std::string& policy) const;
  double settable_khz(const std::string& policy, double wanted_khz) const;

  sys::Kernel& kernel_;
  std::string cpus_;
};

std::optional<double> Cpufreq::base_khz(const std::string& policy, std::uint32_t cpu) const {
  if (const auto khz = number_at(kernel_, policy + "/base_frequency")) return khz;
  if (const auto mhz =
          number_at(kernel_, fmt::format("{}/cpu{}/acpi_cppc/nominal_freq", cpus_, cpu));
      mhz > 0) {
    return 1000 * *mhz;
  }
  return number_at(kernel_, policy + "/cpuinfo_max_freq");
}

Result<std::string> Cpufreq::control_of(const std::string& policy) const {
  const std::string limit = policy + "/scaling_max_freq";
  const Status writable = sys::check_writable(kernel_, limit);
  if (writable) return limit;
  // Reads "<unsupported>" with other governors.
  const std::string speed = policy + "/scaling_setspeed";
  if (number_at(kernel_, speed) && sys::check_writable(kernel_, speed)) return speed;
  return fail(writable.error());
}

double Cpufreq::settable_khz(const std::string& policy, double wanted_khz) const {
  // The kernel refuses values below the lower limit, and that limit is not ours to change.
  const double least = std::max(number_at(kernel_, policy + "/scaling_min_freq").value_or(0),
                                number_at(kernel_, policy + "/cpuinfo_min_freq").value_or(0));
  const double khz = std::max(wanted_khz, least);
  const auto steps = read_numbers(kernel_, policy + "/scaling_available_frequencies");
  double best = 0;
  for (const double step : steps) {
    if (step <= khz && step >= least) best = std::max(best, step);
  }
  return best > 0 ? best : khz;
}

Result<Plan> Cpufreq::plan(const Where& where, double ratio) {
  const std::string folder = cpus_ + "/cpufreq";
  DIAPAUSE_TRY_ASSIGN(const auto names, sys::list_names(kernel_, folder));
  Plan plan;
  for (const std::string& name : names) {
    if (!name.starts_with("policy")) continue;
    const std::string policy = folder + "/" + name;
    const auto members = read_cpus(kernel_, policy + "/affected_cpus");
    if (members.empty() || !std::ranges::includes(where.cpus, members)) continue;
    const auto base = base_khz(policy, members.front());
    if (!base) return fail(Code::io, policy + " does not say what its base clock is");
    DIAPAUSE_TRY_ASSIGN(std::string control, control_of(policy));
    plan.settings.push_back(
        {std::move(control), fmt::format("{:.0f}", settable_khz(policy, ratio * *base))});
    plan.full.push_back(*base);
  }
  if (plan.settings.empty()) {
    return fail(Code::not_found, folder + " has no clock that these cores have for themselves");
  }
  return plan;
}

}  // namespace

std::unique_ptr<Planner> plan_cpufreq(sys::Kernel& kernel, std::string sysfs) {
  return std::make_unique<Cpufreq>(kernel, std::move(sysfs));
}

}  // namespace diapause::governor
