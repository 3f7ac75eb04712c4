// Phases under the governor, on a tree of files with the real watchdog.
#include "governor/governor.hpp"

#include <gmock/gmock.h>

#include <ctime>
#include <thread>

#include "conformance/device_kernel.hpp"
#include "governor/clock_meter.hpp"
#include "governor/node.hpp"
#include "sys/process.hpp"
#include "sys/tasks.hpp"

namespace diapause::governor_test {
namespace {

using config::ActuatorKind;
using config::ThrottlePolicy;
using governor::Governor;
using governor::PhaseStart;
using governor::Scope;
using policy::Why;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class GovernorTest : public testing::Test {
 protected:
  void SetUp() override {
    node.add_cpufreq(2);
    settings.policy = ThrottlePolicy::fixed;
    settings.actuator = ActuatorKind::cpufreq;
    settings.state_path = node.state();
    settings.watchdog = DIAPAUSE_TEST_COMMAND;
  }
  std::unique_ptr<Governor> governor() {
    governor::Environment environment;
    environment.kernel = &kernel;
    environment.sysfs = sysfs;
    environment.processes = {sys::process_id()};
    environment.cpus = {0, 1};
    environment.node_power = [power = node_power](policy::PhaseKind, Scope) { return power; };
    if (joules) environment.node_joules = joules;
    environment.clock_s = [this] { return now_s; };
    environment.log = node.sink();
    return Governor::create(settings, std::move(environment));
  }
  std::string limits() const {
    return node.get(Node::limit_of(0)) + " " + node.get(Node::limit_of(1));
  }
  double now_s = 0;  // now, by the clock that phases are timed with
  const std::string full = "3000000 3000000";

  // Phases of that name are known to take a millisecond a byte from here on.
  void teach(Governor& governor, const PhaseStart& like) {
    PhaseStart first = like;
    first.bytes = 1;
    auto phase = governor.begin_phase(first);
    now_s += 0.001;
    phase.succeeded();
  }
  static PhaseStart write(std::uint64_t bytes) {
    return {.name = "write", .kind = policy::PhaseKind::write, .bytes = bytes, .scope = Scope::job};
  }

  // Processors have counted so far as if they had run at this ratio of the base clock.
  void count_at(double ratio) {
    for (const int cpu : {0, 1}) {
      kernel.perf[{kAperf, cpu}] += static_cast<std::uint64_t>(1000000 * ratio);
      kernel.perf[{kMperf, cpu}] += 1000000;
    }
  }
  void add_clock_counters() {
    const std::string unit = "bus/event_source/devices/msr/";
    node.put(unit + "type", "9");
    node.put(unit + "events/aperf", "event=0x01");
    node.put(unit + "events/mperf", "event=0x02");
    count_at(1);
  }

  static constexpr std::uint64_t kAperf = 1, kMperf = 2;
  energy::DeviceKernel kernel;
  Node node;
  std::string sysfs = node.sysfs();
  config::GovernorSettings settings;
  std::optional<policy::NodePower> node_power;
  std::function<std::optional<double>(double from_s, double to_s)> joules;
};

TEST_F(GovernorTest, SlowsAPhaseAndLetsGoAfterIt) {
  const auto governor = this->governor();
  ASSERT_EQ(governor->trouble(), "");
  teach(*governor, write(1));
  {
    const auto phase = governor->begin_phase(write(1000));
    EXPECT_EQ(limits(), "1700000 1700000");
  }
  EXPECT_EQ(limits(), full);
  EXPECT_THAT(node.log, IsEmpty());
}

TEST_F(GovernorTest, TellsWhatItAskedForAndWhatItGot) {
  node.put("devices/system/cpu/cpufreq/policy0/scaling_available_frequencies",
           "2000000 1600000 800000");
  node.put("devices/system/cpu/cpufreq/policy1/scaling_available_frequencies",
           "2000000 1600000 800000");
  const auto governor = this->governor();
  teach(*governor, write(1));
  (void)governor->begin_phase(write(1000));
  const auto report = governor->report();
  ASSERT_EQ(report.size(), 1U);
  EXPECT_EQ(report[0].why, Why::rule);
  EXPECT_DOUBLE_EQ(report[0].asked, 0.85);
  EXPECT_DOUBLE_EQ(report[0].obtained, 0.8);
}

TEST_F(GovernorTest, TellsTheClockThatProcessorsHaveRunAtAndNotTheirLimit) {
  add_clock_counters();
  const auto governor = this->governor();
  teach(*governor, write(1));
  {
    const auto phase = governor->begin_phase(write(1000));
    count_at(0.97);  // the limit was overruled
    EXPECT_DOUBLE_EQ(phase.ratios().obtained, 0.97);
  }
  EXPECT_DOUBLE_EQ(governor->report()[0].asked, 0.85);
  EXPECT_DOUBLE_EQ(governor->report()[0].obtained, 0.97);
}

TEST_F(GovernorTest, ComparesWithTheBaseClockAndNotWithTheTurboClock) {
  settings.policy = ThrottlePolicy::measured;
  joules = [](double from_s, double to_s) { return 100 * (to_s - from_s); };
  const auto governor = this->governor();
  const auto run = [&] {
    auto phase = governor->begin_phase(write(1));
    now_s += 60;  // the watchdog waits longer by the clock of the machine
    phase.succeeded();
    return limits();
  };
  EXPECT_EQ(run(), "2000000 2000000");
  EXPECT_EQ(limits(), full);
  EXPECT_EQ(run(), "1700000 1700000");  // this was a trial
  EXPECT_EQ(run(), "2000000 2000000");
  EXPECT_EQ(governor->report()[0].why, Why::comparison);
  EXPECT_EQ(limits(), full);
}

TEST_F(GovernorTest, NamesATurboClockWhereNothingIsLimited) {
  add_clock_counters();
  const auto governor = this->governor();
  {
    auto phase = governor->begin_phase(write(1));
    count_at(1.4);
    phase.succeeded();
  }
  EXPECT_DOUBLE_EQ(governor->report()[0].obtained, 1.4);
}

TEST_F(GovernorTest, SaysOnceWhatItWouldTakeToDecide) {
  settings.policy = ThrottlePolicy::measured;
  const auto governor = this->governor();
  for (int i = 0; i < 3; ++i) {
    auto phase = governor->begin_phase(write(1));
    now_s += 0.06;
    phase.succeeded();
  }
  EXPECT_EQ(governor->report()[0].why, Why::power_unknown);
  EXPECT_THAT(node.log, ElementsAre(testing::AllOf(HasSubstr("meter of the whole node"),
                                                   HasSubstr("calibrate"))));
}

TEST_F(GovernorTest, DoesNothingAtAllWhenItIsOff) {
  settings.policy = ThrottlePolicy::off;
  const auto governor = this->governor();
  teach(*governor, write(1));
  (void)governor->begin_phase(write(1000));
  EXPECT_THAT(governor->report(), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(node.state()));
}

TEST_F(GovernorTest, SlowsNothingWithoutAWatchdogAndSaysWhy) {
  settings.watchdog = "/nowhere/diapause";
  const auto governor = this->governor();
  EXPECT_THAT(governor->trouble(), HasSubstr("/nowhere/diapause"));
  ASSERT_THAT(node.log, ElementsAre(HasSubstr("/nowhere/diapause")));
  teach(*governor, write(1));
  const auto phase = governor->begin_phase(write(1000));
  EXPECT_EQ(limits(), full);
}

TEST_F(GovernorTest, SlowsNothingWithAWatchdogThatEndsAtOnce) {
  settings.watchdog = "/bin/true";
  EXPECT_THAT(governor()->trouble(), HasSubstr("/bin/true"));
}

TEST_F(GovernorTest, LeavesCoresAloneThatTheProgramRunsOnToo) {
  const auto governor = this->governor();
  PhaseStart background = write(1000);
  background.scope = Scope::engine;
  teach(*governor, background);
  const auto phase = governor->begin_phase(background);
  EXPECT_EQ(limits(), full);
  EXPECT_EQ(governor->report()[0].why, Why::shared_cores);
}

TEST_F(GovernorTest, LearnsNothingFromAPhaseThatFailed) {
  const auto governor = this->governor();
  (void)governor->begin_phase(write(1));
  const auto phase = governor->begin_phase(write(1000));
  EXPECT_EQ(governor->report()[0].why, Why::duration_unknown);
}

TEST_F(GovernorTest, GovernsOnePhaseAtATime) {
  const auto governor = this->governor();
  teach(*governor, write(1));
  const auto outer = governor->begin_phase(write(1000));
  { const auto inner = governor->begin_phase(write(1000)); }
  EXPECT_EQ(limits(), "1700000 1700000");
}

TEST_F(GovernorTest, GivesUpWhenAControlIsTakenAwayAndLeavesNothingSlowed) {
  const auto governor = this->governor();
  teach(*governor, write(1));
  node.refuse(Node::limit_of(1));
  const auto phase = governor->begin_phase(write(1000));
  EXPECT_THAT(governor->trouble(), HasSubstr(Node::limit_of(1)));
  EXPECT_EQ(node.get(Node::limit_of(0)), "3000000");
}

TEST_F(GovernorTest, LetsGoOfAPhaseThatTakesMuchLongerThanItShould) {
  const auto governor = this->governor();
  teach(*governor, write(1));
  const auto phase = governor->begin_phase(write(60));
  EXPECT_EQ(phase.ratios().obtained, 0.85);
  for (int i = 0; i < 5000 && limits() != full; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(limits(), full);
}

TEST_F(GovernorTest, PutsBackWhatADeadJobLeft) {
  const governor::Owner dead{sys::process_id(), 1,
                             1};  // a process with that number, but started at another time
  ASSERT_TRUE(
      governor::Controls::open(sys::real_kernel(), node.state(), *sys::boot_id(sys::real_kernel()))
          ->want(dead, {{node.path(Node::limit_of(0)), "900000"}}));
  const auto governor = this->governor();
  EXPECT_EQ(limits(), full);
  EXPECT_THAT(node.log, ElementsAre(HasSubstr("1 put back")));
}

TEST_F(GovernorTest, MeasuresAndThenSlowsToTheRatioThatSavesMost) {
  settings.policy = ThrottlePolicy::measured;
  node_power =
      policy::NodePower{{1, 3, 0, 2}, 0};  // all of its power goes with the cube of the clock
  const auto governor = this->governor();
  PhaseStart phase = write(1);
  phase.bytes = 60;
  const auto run = [&] {
    auto guard = governor->begin_phase(phase);
    now_s += 0.06;  // it takes as long at any clock
    guard.succeeded();
  };
  run();
  run();
  EXPECT_EQ(governor->report()[0].why, Why::trial);
  for (int pair_halves = 0; pair_halves < 7; ++pair_halves) run();
  EXPECT_EQ(governor->report()[0].why, Why::saves);
  EXPECT_LT(governor->report()[0].asked, 0.85);
  EXPECT_EQ(limits(), full);
}

// A slow meter changes what it says of a time when it tells again. So the joules of a phase are
// asked for when it is over, and not taken as the difference of two counts.
TEST_F(GovernorTest, AsksForTheJoulesOfAPhaseAsTheyAreKnownAtItsEnd) {
  settings.policy = ThrottlePolicy::measured;
  settings.actuator = ActuatorKind::dry_run;
  std::vector<std::pair<double, double>> asked;
  joules = [&](double from_s, double to_s) {
    if (to_s > from_s) asked.emplace_back(from_s, to_s);
    return 100 * (to_s - from_s);
  };
  const auto governor = this->governor();
  now_s = 5;
  auto phase = governor->begin_phase(write(1));
  now_s = 7;
  phase.succeeded();
  { const auto ends = std::move(phase); }
  EXPECT_THAT(asked, ElementsAre(std::pair(5.0, 7.0)));
}

TEST_F(GovernorTest, CountsForABackgroundPhaseOnlyWhatTheNodeUsesBecauseOfIt) {
  // A node that draws 1000 W for the program, and no more while a phase runs: nothing tells what
  // the phase costs.
  settings.policy = ThrottlePolicy::measured;
  settings.actuator = ActuatorKind::dry_run;
  joules = [](double from_s, double to_s) { return 1000 * (to_s - from_s); };
  const auto governor = this->governor();
  const auto run = [&](Scope scope) {
    PhaseStart phase = write(1);
    phase.name = scope == Scope::job ? "waited for" : "behind";
    phase.scope = scope;
    auto guard = governor->begin_phase(phase);
    now_s += 0.06;
    guard.succeeded();
  };
  for (const Scope scope : {Scope::engine, Scope::job, Scope::engine, Scope::job}) run(scope);
  EXPECT_EQ(governor->report()[0].why, Why::power_unknown);
  EXPECT_EQ(governor->report()[1].why, Why::trial);
}

TEST_F(GovernorTest, InADryRunSaysWhatItWouldDoAndChangesNothing) {
  settings.actuator = ActuatorKind::dry_run;
  const auto governor = this->governor();
  teach(*governor, write(1));
  {
    const auto phase = governor->begin_phase(write(1000));
    EXPECT_EQ(limits(), full);
  }
  EXPECT_THAT(node.log,
              ElementsAre(HasSubstr("would slow"), HasSubstr("would put the clock back")));
  EXPECT_EQ(governor->report()[0].obtained, 1);
}

double cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

TEST_F(GovernorTest, EmulatesALowerClockByLessTimeForAThreadThatComputes) {
  settings.actuator = ActuatorKind::emulated;
  settings.ratio_write = 0.4;
  sysfs = "/sys";
  const auto governor = this->governor();
  if (!governor->trouble().empty()) GTEST_SKIP() << governor->trouble();
  PhaseStart background = write(1000);
  background.scope = Scope::engine;
  teach(*governor, background);
  const auto phase = governor->begin_phase(background);
  ASSERT_EQ(governor->report()[0].asked, 0.4);
  const double begin_s = sys::monotonic_s(), begin_cpu_s = cpu_s();
  while (sys::monotonic_s() < begin_s + 0.3) {
  }
  EXPECT_LT((cpu_s() - begin_cpu_s) / (sys::monotonic_s() - begin_s), 0.6);
}

TEST_F(GovernorTest, TakesThePowerLimitWhereThereIsNoClockToSet) {
  node.remove("devices/system/cpu/cpufreq");
  node.add_powercap(0, {0, 1});
  settings.actuator = ActuatorKind::automatic;
  EXPECT_EQ(governor()->actuator(), "powercap");
}

TEST_F(GovernorTest, NamesEverythingThatItTriedWhereNothingWorks) {
  node.remove("devices");
  settings.actuator = ActuatorKind::automatic;
  const auto governor = this->governor();
  if (governor->actuator() == "uclamp") GTEST_SKIP() << "this kernel can cap utilisation";
  EXPECT_THAT(governor->trouble(), testing::AllOf(HasSubstr("cpufreq"), HasSubstr("powercap"),
                                                  HasSubstr("utilisation")));
}

}  // namespace
}  // namespace diapause::governor_test
