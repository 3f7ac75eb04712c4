// Killed at any moment, a job leaves nothing changed.
#include <gmock/gmock.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <random>
#include <thread>

#include "governor/node.hpp"
#include "sys/tasks.hpp"

namespace diapause::governor_test {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class Victim {
 public:
  Victim(const std::string& actuator, const Node& node, const std::string& sysfs) {
    const std::string state = node.state();
    const char* arguments[] = {DIAPAUSE_TEST_VICTIM,  actuator.c_str(), state.c_str(),
                               DIAPAUSE_TEST_COMMAND, sysfs.c_str(),    nullptr};
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    const int error = posix_spawn(&process_, DIAPAUSE_TEST_VICTIM, nullptr, &attributes,
                                  const_cast<char**>(arguments), environ);
    posix_spawnattr_destroy(&attributes);
    if (error != 0) throw std::runtime_error("cannot start the victim");
  }
  ~Victim() {
    kill();
    ::kill(-process_, SIGKILL);  // a child of it
  }
  void kill() {
    if (std::exchange(is_dead_, true)) return;
    ::kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  bool has_ended() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid != 0;
  }
  pid_t process() const { return process_; }

 private:
  pid_t process_ = 0;
  bool is_dead_ = false;
};

bool comes_true(const std::function<bool()>& condition) {
  for (int i = 0; i < 20000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return false;
}

class KillTest : public testing::Test {
 protected:
  void SetUp() override { node.add_cpufreq(4); }

  bool is_slowed() const {
    for (unsigned cpu = 0; cpu < 4; ++cpu) {
      if (node.get(Node::limit_of(cpu)) != "3000000") return true;
    }
    return false;
  }
  bool has_requests() const {
    const auto journal = governor::load_journal(
        *sys::Directory::open_private(sys::real_kernel(), node.state()), boot());
    return !journal || !journal->controls.empty() || !journal->groups.empty();
  }
  static std::string boot();

  // Returns how many of them were slowed when they were killed.
  int kill_at_random_moments(int times) {
    std::mt19937 random(20260727);
    std::uniform_int_distribution<int> moment_us(0, 60000);
    int slowed = 0;
    for (int i = 0; i < times; ++i) {
      Victim victim("cpufreq", node, node.sysfs());
      // A slow machine needs longer than that until it slows anything: every second one dies after
      // it has.
      if (i % 2 == 1) {
        EXPECT_TRUE(comes_true([&] { return is_slowed(); })) << i;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(moment_us(random)));
      slowed += is_slowed() ? 1 : 0;
      victim.kill();
      EXPECT_TRUE(comes_true([&] {
        return !is_slowed() && (!fs::exists(node.state()) || !has_requests());
      })) << i;
    }
    return slowed;
  }

  Node node;
};

std::string KillTest::boot() { return *sys::boot_id(sys::real_kernel()); }

TEST_F(KillTest, PutsEverythingBackWhereverTheJobDies) { EXPECT_GE(kill_at_random_moments(25), 1); }

using LongKillTest = KillTest;
TEST_F(LongKillTest, PutsEverythingBackInTwoHundredDeaths) {
  EXPECT_GE(kill_at_random_moments(200), 20);
}

TEST_F(KillTest, PutsEverythingBackAlthoughAChildHoldsTheFilesOfTheJob) {
  Victim victim("with-child", node, node.sysfs());
  ASSERT_TRUE(comes_true([&] { return is_slowed(); }));
  victim.kill();
  EXPECT_TRUE(comes_true([&] { return !is_slowed() && !has_requests(); }));
}

// Control groups of this machine, where they may be made.
class EmulatedKillTest : public KillTest {
 protected:
  static std::vector<fs::path> groups(pid_t process) {
    std::vector<fs::path> found;
    std::error_code error;
    for (const char* root :
         {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup"}) {
      for (fs::recursive_directory_iterator at(root, error), end; !error && at != end;
           at.increment(error)) {
        const std::string name = at->path().filename();
        if (name.starts_with("diapause-" + std::to_string(process) + "-"))
          found.push_back(at->path());
      }
    }
    return found;
  }
};

TEST_F(EmulatedKillTest, LeavesNoControlGroupBehind) {
  for (int i = 0; i < 20; ++i) {
    Victim victim("emulated", node, "/sys");
    const pid_t process = victim.process();
    ASSERT_TRUE(comes_true([&] { return !groups(process).empty() || victim.has_ended(); }));
    if (victim.has_ended()) GTEST_SKIP() << "this machine gives us no control group to limit";
    std::this_thread::sleep_for(milliseconds(i / 2));
    victim.kill();
    EXPECT_TRUE(comes_true([&] { return groups(process).empty() && !has_requests(); })) << i;
  }
}

}  // namespace
}  // namespace diapause::governor_test
