// Tests which values the actuators choose, on trees as machines have them.
#include <gmock/gmock.h>

#include <map>

#include "governor/actuators/cpufreq.hpp"
#include "governor/actuators/emulated.hpp"
#include "governor/actuators/powercap.hpp"
#include "governor/actuators/uclamp.hpp"
#include "governor/node.hpp"
#include "sys/tasks.hpp"
#include "sys/thread.hpp"

namespace diapause::governor_test {
namespace {

using governor::Plan;
using governor::Planner;
using governor::Where;
using testing::HasSubstr;

std::string values(const Result<Plan>& plan) {
  if (!plan) return plan.error().message;
  std::string text;
  for (const auto& setting : plan->settings) text += (text.empty() ? "" : " ") + setting.value;
  return text;
}

class CpufreqTest : public testing::Test {
 protected:
  void SetUp() override { node.add_cpufreq(4); }
  void put(unsigned cpu, const std::string& name, const std::string& text) const {
    node.put("devices/system/cpu/cpufreq/policy" + std::to_string(cpu) + "/" + name, text);
  }
  Result<Plan> plan(std::vector<std::uint32_t> cpus, double ratio) {
    return governor::plan_cpufreq(sys::real_kernel(), node.sysfs())
        ->plan({std::move(cpus), {}}, ratio);
  }
  Node node;
};

TEST_F(CpufreqTest, LimitsTheClockToARatioOfTheBaseClockAndNotOfTheTurboClock) {
  EXPECT_EQ(values(plan({0}, 0.85)), "1700000");
}

TEST_F(CpufreqTest, TakesTheNominalFrequencyForTheBaseClockWhereTheDriverHasNone) {
  node.remove("devices/system/cpu/cpufreq/policy0/base_frequency");
  node.put("devices/system/cpu/cpu0/acpi_cppc/nominal_freq", "2400");
  EXPECT_EQ(values(plan({0}, 0.5)), "1200000");
}

TEST_F(CpufreqTest, TakesTheStepBelowWhereTheDriverHasSteps) {
  put(0, "scaling_available_frequencies", "2000000 1800000 1600000 800000 ");
  EXPECT_EQ(values(plan({0}, 0.85)), "1600000");
}

TEST_F(CpufreqTest, StaysAboveTheLowerLimit) {
  put(0, "scaling_min_freq", "1900000");
  EXPECT_EQ(values(plan({0}, 0.85)), "1900000");
}

TEST_F(CpufreqTest, NeverSlowsAProcessorThatIsNotTheJobs) {
  put(2, "affected_cpus", "2 3");
  const auto found = plan({1, 2}, 0.85);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->settings.size(), 1U);
  EXPECT_THAT(found->settings[0].path, HasSubstr("policy1/"));
}

TEST_F(CpufreqTest, SetsTheSpeedWhereTheLimitMayNotBeWritten) {
  node.refuse(Node::limit_of(0));
  put(0, "scaling_setspeed", "2000000");
  const auto found = plan({0}, 0.85);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(found->settings[0].path, HasSubstr("scaling_setspeed"));
}

TEST_F(CpufreqTest, SaysWhichFileItMayNotWrite) {
  node.refuse(Node::limit_of(0));
  const auto found = plan({0}, 0.85);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::denied);
  EXPECT_THAT(found.error().message, HasSubstr(Node::limit_of(0)));
}

TEST_F(CpufreqTest, SaysThatAMachineHasNoClockToSet) {
  Node bare;
  const auto found =
      governor::plan_cpufreq(sys::real_kernel(), bare.sysfs())->plan({{0}, {}}, 0.85);
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("cpufreq"));
}

TEST(Powercap, LimitsThePackageAndNoPartOfItAndNotTwice) {
  Node node;
  node.add_powercap(0, {0, 1});
  const auto plan =
      governor::plan_powercap(sys::real_kernel(), node.sysfs())->plan({{0, 1}, {}}, 0.8);
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_EQ(plan->settings.size(), 1U);
  EXPECT_EQ(plan->settings[0].path,
            node.path("class/powercap/intel-rapl:0/constraint_0_power_limit_uw"));
  EXPECT_EQ(plan->settings[0].value, "120000000");
}

TEST(Powercap, LeavesAPackageAloneThatOtherJobsUseToo) {
  Node node;
  node.add_powercap(0, {0, 1});
  node.add_powercap(1, {2, 3});
  const auto plan =
      governor::plan_powercap(sys::real_kernel(), node.sysfs())->plan({{0, 2, 3}, {}}, 0.8);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->settings.size(), 1U);
  EXPECT_THAT(plan->settings[0].path, HasSubstr("intel-rapl:1/"));
}

TEST(Powercap, LimitsEachDieWhoseCoresAreAllTheJobs) {
  Node node;
  node.add_powercap(0, {0, 1});
  node.add_powercap(1, {2, 3});
  for (const unsigned cpu : {0U, 1U, 2U, 3U}) {
    const std::string topology = "devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    node.put(topology + "physical_package_id", "0");
    node.put(topology + "die_id", cpu < 2 ? "0" : "1");
  }
  node.put("class/powercap/intel-rapl:0/name", "package-0-die-0");
  node.put("class/powercap/intel-rapl:1/name", "package-0-die-1");
  const auto plan =
      governor::plan_powercap(sys::real_kernel(), node.sysfs())->plan({{0, 2, 3}, {}}, 0.8);
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_EQ(plan->settings.size(), 1U);
  EXPECT_THAT(plan->settings[0].path, HasSubstr("intel-rapl:1/"));
}

constexpr std::int64_t kNoSuchThread = 5'000'000;  // above the kernel's largest number

class EmulatedTest : public testing::Test {
 protected:
  // Makes the files that the kernel would make for a new group.
  void add_group(const std::string& path, const std::vector<std::string>& files) const {
    for (const std::string& file : files) node.put(path + "/" + file, "-1");
  }
  Result<Plan> plan(const std::string& own_groups) {
    planner =
        governor::plan_emulated(sys::real_kernel(), {node.sysfs(), own_groups, owner(1)}, controls);
    return planner->plan({{}, {slowed}}, 0.85);
  }
  Node node;
  governor::Controls controls = node.controls();
  std::unique_ptr<Planner> planner;
  std::int64_t slowed = kNoSuchThread;
};

TEST_F(EmulatedTest, LimitsTheTimeOfEachThreadInVersion1OfControlGroups) {
  node.put("fs/cgroup/cpu/job/cpu.cfs_period_us", "100000");
  const std::string group = "fs/cgroup/cpu/job/diapause-1-1-5000000";
  add_group(group, {"cpu.cfs_period_us", "cpu.cfs_quota_us", "tasks"});
  const auto found = plan("3:cpuset:/\n1:cpu,cpuacct:/job\n0::/other");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->settings[0].path, node.path(group + "/cpu.cfs_quota_us"));
  EXPECT_EQ(found->settings[0].value, "8500");
  EXPECT_EQ(node.get(group + "/cpu.cfs_period_us"), "10000");
  EXPECT_EQ(node.get(group + "/tasks"), "5000000");
}

TEST_F(EmulatedTest, LimitsTheTimeOfEachThreadInVersion2OfControlGroups) {
  node.put("fs/cgroup/job/cgroup.subtree_control", "cpu memory");
  const std::string group = "fs/cgroup/job/diapause-1-1-5000000";
  add_group(group, {"cgroup.type", "cpu.max", "cgroup.threads"});
  const auto found = plan("0::/job");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->settings[0].path, node.path(group + "/cpu.max"));
  EXPECT_EQ(found->settings[0].value, "8500 10000");
  EXPECT_EQ(node.get(group + "/cgroup.type"), "threaded");
  EXPECT_EQ(node.get(group + "/cgroup.threads"), "5000000");
}

// Without this a flush at a lower clock would get more of a shared core than one at the full clock.
TEST_F(EmulatedTest, LetsTheGroupGiveWayAsItsThreadDid) {
  node.put("fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  node.put("fs/cgroup/job/cgroup.subtree_control", "cpu memory");
  const auto thread = sys::Thread::start([&] {
    ASSERT_TRUE(sys::give_way(10, std::nullopt));
    slowed = sys::thread_id();
    const std::string own = "diapause-1-1-" + std::to_string(slowed);
    add_group("fs/cgroup/cpu/" + own,
              {"cpu.cfs_period_us", "cpu.cfs_quota_us", "cpu.shares", "tasks"});
    add_group("fs/cgroup/job/" + own,
              {"cgroup.type", "cpu.max", "cpu.weight.nice", "cgroup.threads"});
    EXPECT_TRUE(plan("1:cpu:/"));
    EXPECT_EQ(node.get("fs/cgroup/cpu/" + own + "/cpu.shares"), "110");
    EXPECT_TRUE(plan("0::/job"));
    EXPECT_EQ(node.get("fs/cgroup/job/" + own + "/cpu.weight.nice"), "10");
  });
  ASSERT_TRUE(thread);
}

TEST_F(EmulatedTest, SaysWhatIsMissingWhereGroupsGiveNoTime) {
  node.put("fs/cgroup/job/cgroup.subtree_control", "memory");
  const auto found = plan("0::/job");
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("cgroup.subtree_control lacks cpu"));
}

// Caps as a kernel with CONFIG_UCLAMP_TASK keeps them. At file scope there may be no state, so the
// threads' numbers carry it.
struct Caps {
  static std::map<std::int64_t, std::uint32_t>& all() {
    static std::map<std::int64_t, std::uint32_t> caps;
    return caps;
  }
  static Result<std::uint32_t> read(std::int64_t thread) {
    if (!all().contains(thread)) return fail(os_error("no thread", ESRCH));
    return all()[thread];
  }
  static Status write(std::int64_t thread, std::uint32_t most) {
    all()[thread] = most;
    return {};
  }
};

class UclampTest : public testing::Test {
 protected:
  UclampTest() { Caps::all() = {{self, 1024}, {1, 1024}}; }
  const std::int64_t self = sys::thread_id();
  std::unique_ptr<governor::Actuator> actuator =
      governor::make_utilisation_cap(sys::real_kernel(), {Caps::read, Caps::write});
};

TEST_F(UclampTest, CapsItsOwnThreadsAndPutsThemBack) {
  const auto obtained = actuator->slow({{}, {self}}, 0.5);
  ASSERT_TRUE(obtained) << obtained.error().message;
  EXPECT_EQ(Caps::all()[self], 512U);
  ASSERT_TRUE(actuator->restore());
  EXPECT_EQ(Caps::all()[self], 1024U);
}

TEST_F(UclampTest, LeavesThreadsOfOtherProcessesAlone) {
  EXPECT_FALSE(actuator->slow({{}, {1}}, 0.5));
  EXPECT_EQ(Caps::all()[1], 1024U);
}

TEST_F(UclampTest, LeavesACapAloneThatSomebodyElseHasSetSince) {
  ASSERT_TRUE(actuator->slow({{}, {self}}, 0.5));
  Caps::all()[self] = 300;
  ASSERT_TRUE(actuator->restore());
  EXPECT_EQ(Caps::all()[self], 300U);
}

TEST(Uclamp, SaysWhyWhereTheKernelHasNoCaps) {
  const auto actuator =
      governor::make_utilisation_cap(sys::real_kernel(), governor::kernel_cap_calls());
  const Status works = actuator->check({});
  if (works) GTEST_SKIP() << "this kernel has them";
  EXPECT_FALSE(works.error().message.empty());
}

}  // namespace
}  // namespace diapause::governor_test
