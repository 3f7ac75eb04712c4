#include "governor/actuators/emulated.hpp"

#include <fmt/core.h>

#include <cmath>
#include <optional>
#include <set>

#include "sys/control_file.hpp"
#include "sys/thread.hpp"
#include "sys/value_file.hpp"

namespace diapause::governor {
namespace {

constexpr int kPeriod_us = 10000;  // short compared with the shortest phase that is slowed
constexpr double kSharesOfNicenessZero = 1024;

// The files of one version of control groups. Both versions are searched, because a machine may
// have either or both.
struct Hierarchy {
  std::string group;    // the group of this process
  std::string threads;  // file that takes a thread
  bool is_version_2;

  std::string limit_file(const std::string& path) const {
    return path + (is_version_2 ? "/cpu.max" : "/cpu.cfs_quota_us");
  }
  std::string limit(double ratio) const {
    const long quota_us = std::lround(ratio * kPeriod_us);
    return is_version_2 ? fmt::format("{} {}", quota_us, kPeriod_us) : fmt::format("{}", quota_us);
  }

  // Lets a group give way as a thread of this niceness does, because the niceness of a thread only
  // counts within its group. Version 1 has no file for it; each step takes a fifth off a weight.
  Status set_weight(sys::Kernel& kernel, const std::string& path, int niceness) const {
    if (is_version_2) {
      return sys::write_value(kernel, path + "/cpu.weight.nice", fmt::format("{}", niceness));
    }
    const long shares = std::lround(kSharesOfNicenessZero / std::pow(1.25, niceness));
    return sys::write_value(kernel, path + "/cpu.shares", fmt::format("{}", shares));
  }
};

// Returns the path of this process's group. In "7:cpu,cpuacct:/path" it is the path in the
// hierarchy of that controller; "0::/path" is that of version 2.
std::optional<std::string> own_group(const std::string& own_groups, std::string_view controller) {
  for (std::size_t start = 0; start < own_groups.size();) {
    const std::size_t end = std::min(own_groups.find('\n', start), own_groups.size());
    const std::string line = own_groups.substr(start, end - start);
    start = end + 1;
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    if (controllers.find(fmt::format(",{},", controller)) == std::string::npos) continue;
    const std::string path = line.substr(second + 1);
    return path == "/" ? "" : path;
  }
  return std::nullopt;
}

class EmulatedClock final : public Planner {
 public:
  EmulatedClock(sys::Kernel& kernel, GroupPlaces places, Controls& controls)
      : kernel_(kernel), places_(std::move(places)), controls_(controls) {}

  Traits traits() const override {
    return {.name = "emulated", .sets_clock = true, .slows_cores = false};
  }
  Status check(const Where&) override {
    DIAPAUSE_TRY_ASSIGN(const Hierarchy found, find_hierarchy());
    return sys::check_writable(kernel_, found.group + found.threads);
  }
  Result<Plan> plan(const Where& where, double ratio) override;

 private:
  Result<Hierarchy> find_hierarchy() const;
  std::string group_of(std::int64_t thread) const {
    return fmt::format("{}/diapause-{}-{}-{}", hierarchy_->group, places_.owner.process,
                       places_.owner.number, thread);
  }
  Status make_group_for(std::int64_t thread);

  sys::Kernel& kernel_;
  GroupPlaces places_;
  Controls& controls_;
  std::optional<Hierarchy> hierarchy_;
  std::set<std::int64_t> grouped_;
};

Result<Hierarchy> EmulatedClock::find_hierarchy() const {
  const std::string root = places_.sysfs + "/fs/cgroup";
  if (const auto own = own_group(places_.own_groups, "cpu")) {
    for (const char* mount : {"/cpu", "/cpu,cpuacct"}) {
      Hierarchy found{root + mount + *own, "/tasks", false};
      if (sys::read_value(kernel_, found.limit_file(found.group)) ||
          sys::read_value(kernel_, found.group + "/cpu.cfs_period_us")) {
        return found;
      }
    }
  }
  const auto own = own_group(places_.own_groups, "");
  const std::string group = root + own.value_or("");
  const auto controllers = sys::read_value(kernel_, group + "/cgroup.subtree_control");
  if (own && controllers && (" " + *controllers + " ").find(" cpu ") != std::string::npos) {
    return Hierarchy{group, "/cgroup.threads", true};
  }
  return fail(
      Code::not_found,
      group + " gives its groups no limit of processor time (cgroup.subtree_control lacks cpu)");
}

Status EmulatedClock::make_group_for(std::int64_t thread) {
  if (grouped_.contains(thread)) return {};
  const std::string group = group_of(thread);
  DIAPAUSE_TRY(controls_.note_group(places_.owner, group));
  DIAPAUSE_TRY(sys::make_group(kernel_, group));
  if (hierarchy_->is_version_2) {
    DIAPAUSE_TRY(sys::write_value(kernel_, group + "/cgroup.type", "threaded"));
  } else {
    DIAPAUSE_TRY(
        sys::write_value(kernel_, group + "/cpu.cfs_period_us", fmt::format("{}", kPeriod_us)));
  }
  if (const auto niceness = sys::niceness(thread)) {
    DIAPAUSE_TRY(hierarchy_->set_weight(kernel_, group, *niceness));
  }
  DIAPAUSE_TRY(sys::write_value(kernel_, group + hierarchy_->threads, fmt::format("{}", thread)));
  grouped_.insert(thread);
  return {};
}

Result<Plan> EmulatedClock::plan(const Where& where, double ratio) {
  if (!hierarchy_) {
    DIAPAUSE_TRY_ASSIGN(hierarchy_, find_hierarchy());
  }
  Plan plan;
  for (const std::int64_t thread : where.threads) {
    if (auto made = make_group_for(thread); !made) {
      if (made.error().os_errno == ESRCH) continue;  // the thread has ended meanwhile
      return fail(made.error());
    }
    plan.settings.push_back({hierarchy_->limit_file(group_of(thread)), hierarchy_->limit(ratio)});
    plan.full.push_back(kPeriod_us);
  }
  if (plan.settings.empty()) return fail(Code::not_found, "there is no thread to slow");
  return plan;
}

}  // namespace

std::unique_ptr<Planner> plan_emulated(sys::Kernel& kernel, GroupPlaces places,
                                       Controls& controls) {
  return std::make_unique<EmulatedClock>(kernel, std::move(places), controls);
}

}  // namespace diapause::governor
