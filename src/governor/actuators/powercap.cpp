#include "governor/actuators/powercap.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "governor/actuators/numbers.hpp"
#include "sys/control_file.hpp"
#include "sys/value_file.hpp"

namespace diapause::governor {
namespace {

constexpr std::string_view kPackage = "package-";
constexpr std::string_view kDie = "-die-";

class Powercap final : public Planner {
 public:
  Powercap(sys::Kernel& kernel, std::string sysfs) : kernel_(kernel), sysfs_(std::move(sysfs)) {}

  Traits traits() const override {
    return {.name = "powercap", .sets_clock = false, .slows_cores = true, .is_real = true};
  }
  Status check(const Where& where) override {
    DIAPAUSE_TRY(plan(where, 1));
    return {};
  }
  Result<Plan> plan(const Where& where, double ratio) override;

 private:
  bool has_for_itself(const Where& where, const std::string& zone) const;
  std::optional<std::string> long_term_constraint(const std::string& zone) const;

  sys::Kernel& kernel_;
  std::string sysfs_;
};

// Returns whether all processors of that package, or of the die of a package ("0-die-1"), are among
// those to slow.
bool Powercap::has_for_itself(const Where& where, const std::string& zone) const {
  const std::size_t bar = zone.find(kDie);
  const std::string package = zone.substr(0, bar);
  const std::string die = bar == std::string::npos ? "" : zone.substr(bar + kDie.size());
  const std::string folder = sysfs_ + "/devices/system/cpu";
  const auto names = sys::list_names(kernel_, folder);
  if (!names) return false;
  bool has_any = false;
  for (const std::string& name : *names) {
    const auto cpu = cpu_of(name);
    if (!cpu) continue;
    const auto its_package =
        sys::read_value(kernel_, folder + "/" + name + "/topology/physical_package_id");
    if (!its_package || *its_package != package) continue;
    const auto its_die = sys::read_value(kernel_, folder + "/" + name + "/topology/die_id");
    if (!die.empty() && its_die && *its_die != die) continue;
    has_any = true;
    if (!std::ranges::binary_search(where.cpus, *cpu)) return false;
  }
  return has_any;
}

std::optional<std::string> Powercap::long_term_constraint(const std::string& zone) const {
  for (int i = 0; i < 3; ++i) {
    std::string constraint = fmt::format("{}/constraint_{}", zone, i);
    if (const auto name = sys::read_value(kernel_, constraint + "_name");
        name && *name == "long_term") {
      return constraint;
    }
  }
  return std::nullopt;
}

Result<Plan> Powercap::plan(const Where& where, double ratio) {
  const std::string folder = sysfs_ + "/class/powercap";
  DIAPAUSE_TRY_ASSIGN(const auto names, sys::list_names(kernel_, folder));
  Plan plan;
  for (const std::string& name : names) {
    // "intel-rapl:0" is a zone; "intel-rapl:0:1" is a part of one, and "intel-rapl-mmio:0" another
    // interface to it.
    if (!name.starts_with("intel-rapl:") || std::ranges::count(name, ':') != 1) continue;
    const std::string zone = folder + "/" + name;
    const auto label = sys::read_value(kernel_, zone + "/name");
    if (!label || !label->starts_with(kPackage)) continue;
    if (!has_for_itself(where, label->substr(kPackage.size()))) continue;
    const auto constraint = long_term_constraint(zone);
    if (!constraint) continue;
    const std::string limit = *constraint + "_power_limit_uw";
    auto full = number_at(kernel_, *constraint + "_max_power_uw");
    if (!full || *full <= 0) full = number_at(kernel_, limit);
    if (!full || *full <= 0)
      return fail(Code::io, limit + " does not say how much power the processor may draw");
    DIAPAUSE_TRY(sys::check_writable(kernel_, limit));
    plan.settings.push_back({limit, fmt::format("{:.0f}", ratio * *full)});
    plan.full.push_back(*full);
  }
  if (plan.settings.empty()) {
    return fail(Code::not_found,
                folder + " has no power limit of a processor whose cores are all this job's");
  }
  return plan;
}

}  // namespace

std::unique_ptr<Planner> plan_powercap(sys::Kernel& kernel, std::string sysfs) {
  return std::make_unique<Powercap>(kernel, std::move(sysfs));
}

}  // namespace diapause::governor
