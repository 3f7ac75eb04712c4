// A tier in memory takes no more than the control groups of the process allow: beyond, the program
// would be killed.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "conformance/tier_world.hpp"
#include "support/file_helpers.hpp"
#include "sys/cgroup.hpp"

namespace diapause::conformance {
namespace {

using config::TierKind;
using test_support::code_of;

// A machine whose groups lie on a disk in memory.
class MemoryLimit : public testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) {
    for (std::size_t slash = path.find('/', 1); slash != path.npos;
         slash = path.find('/', slash + 1)) {
      disk_.mkdirat(AT_FDCWD, path.substr(0, slash).c_str(), 0700);
    }
    const int fd = disk_.openat(AT_FDCWD, path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    disk_.pwrite(fd, as_byte_view(text), 0);
    disk_.close(fd);
  }
  void put_group(const std::string& path, const std::string& limit, std::uint64_t usage) {
    put(path + "/memory.max", limit + "\n");
    put(path + "/memory.current", std::to_string(usage) + "\n");
  }
  // The least that a group has left.
  std::optional<std::uint64_t> room() {
    std::optional<std::uint64_t> least;
    for (const sys::MemoryRoom& group : sys::memory_of_cgroups(disk_)) {
      least = std::min(least.value_or(group.left), group.left);
    }
    return least;
  }

  test_support::VolatileDisk disk_;
};

TEST_F(MemoryLimit, IsNoneWhereThereAreNoGroups) {
  EXPECT_EQ(room(), std::nullopt);
  put("/proc/self/cgroup", "0::/\n");
  EXPECT_EQ(room(), std::nullopt);
  put_group("/sys/fs/cgroup", "max", 1000);
  EXPECT_EQ(room(), std::nullopt);
}

TEST_F(MemoryLimit, IsTheLeastOfAllGroupsAboveTheProcess) {
  put("/proc/self/cgroup", "0::/slurm/job/step\n");
  put_group("/sys/fs/cgroup/slurm/job/step", "max", 100);
  put_group("/sys/fs/cgroup/slurm/job", "5000", 4000);
  put_group("/sys/fs/cgroup/slurm", "9000", 8500);
  EXPECT_EQ(room(), 500U);
  put_group("/sys/fs/cgroup/slurm/job", "5000", 4900);
  EXPECT_EQ(room(), 100U);
  put_group("/sys/fs/cgroup/slurm/job", "5000", 6000);
  EXPECT_EQ(room(), 0U) << "more is used than allowed";
}

TEST_F(MemoryLimit, CountsWhatIsHeldOfFilesAsFree) {
  put("/proc/self/cgroup", "0::/a\n");
  put_group("/sys/fs/cgroup/a", "5000", 4500);
  put("/sys/fs/cgroup/a/memory.stat", "anon 1000\ninactive_file 3000\ninactive_file_x 7\n");
  EXPECT_EQ(room(), 3500U);
}

TEST_F(MemoryLimit, HeedsTheLimitFromWhichOnProgramsAreSlowed) {
  put("/proc/self/cgroup", "0::/a\n");
  put_group("/sys/fs/cgroup/a", "5000", 1000);
  put("/sys/fs/cgroup/a/memory.high", "3000\n");
  EXPECT_EQ(room(), 2000U);
}

TEST_F(MemoryLimit, IsFoundInVersion1) {
  put("/proc/self/cgroup", "5:devices:/x\n4:hugetlb,memory:/job/one\n");
  put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "8000\n");
  put("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "3000\n");
  put("/sys/fs/cgroup/memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 500\n");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "100000\n");
  EXPECT_EQ(room(), 5500U);
}

TEST_F(MemoryLimit, IsThatOfTheMountInAContainerThatIsToldThePathOfItsHost) {
  put("/proc/self/cgroup", "0::/docker/1234\n");
  put_group("/sys/fs/cgroup", "7000", 1000);
  EXPECT_EQ(room(), 6000U);
}

TEST_F(MemoryLimit, MakesATierInMemoryFullBeforeItIsMet) {
  put("/proc/self/cgroup", "0::/a\n");
  put_group("/sys/fs/cgroup/a", std::to_string(40 * kMiB), 10 * kMiB);
  auto memory = open_tier(disk_, TierKind::memory, "/memory");
  ASSERT_TRUE(memory) << memory.error().message;
  EXPECT_EQ(code_of(memory->acquire(31 * kMiB, 0)), Code::full);
  EXPECT_TRUE(memory->acquire(20 * kMiB, 0));
  auto local = open_tier(disk_, TierKind::local, "/local");
  EXPECT_TRUE(local->acquire(31 * kMiB, 0)) << "it takes no memory";
}

TEST_F(MemoryLimit, LeavesAPartToTheProgram) {
  put("/proc/self/cgroup", "0::/a\n");
  put_group("/sys/fs/cgroup/a", std::to_string(64 * kMiB), 32 * kMiB);
  auto memory = open_tier(disk_, TierKind::memory, "/memory");
  EXPECT_EQ(code_of(memory->acquire(31 * kMiB, 0)), Code::full);
  EXPECT_TRUE(memory->acquire(30 * kMiB, 0));
}

// A second version of a program that fills a third of its group has to fit.
TEST_F(MemoryLimit, LeavesASmallerPartOfALargeGroup) {
  put("/proc/self/cgroup", "0::/a\n");
  put_group("/sys/fs/cgroup/a", std::to_string(1600 * kMiB), 1560 * kMiB);
  auto memory = open_tier(disk_, TierKind::memory, "/memory");
  EXPECT_EQ(code_of(memory->acquire(9 * kMiB, 0)), Code::full);
  EXPECT_TRUE(memory->acquire(7 * kMiB, 0));
}

TEST_F(MemoryLimit, HeedsWhatTheWholeMachineHasLeft) {
  put("/proc/meminfo",
      "MemTotal:        65536 kB\nMemFree:          1024 kB\nMemAvailable:    32768 kB\n");
  auto memory = open_tier(disk_, TierKind::memory, "/memory");
  EXPECT_EQ(code_of(memory->acquire(31 * kMiB, 0)), Code::full);
  EXPECT_TRUE(memory->acquire(30 * kMiB, 0));
}

// Nodes that are emulated share the memory of a machine. The usage of a group on this disk does not
// change by what tiers take: whatever counts here was promised.
TEST_F(MemoryLimit, CountsWhatOtherRanksAreGoingToFill) {
  put("/proc/self/cgroup", "0::/a\n");
  put_group("/sys/fs/cgroup/a", std::to_string(64 * kMiB), 20 * kMiB);
  auto first = open_tier(disk_, TierKind::memory, "/memory");
  auto same_node = open_tier(disk_, TierKind::memory, "/memory", false);
  auto second =
      store::Tier::open(disk_, TierKind::memory, "/memory", "job-00000000", "node2", true);
  ASSERT_TRUE(first && same_node && second);
  auto later = first->acquire(30 * kMiB, 0, store::SlotUse::later);
  ASSERT_TRUE(later) << later.error().message;
  EXPECT_EQ(code_of(same_node->acquire(20 * kMiB, 1)), Code::full);
  EXPECT_EQ(code_of(second->acquire(20 * kMiB, 1)), Code::full);
  EXPECT_TRUE(second->acquire(10 * kMiB, 1));
  first->discard(std::move(*later));
  EXPECT_TRUE(second->acquire(20 * kMiB, 1)) << "it is not wanted any more";
}

// ---- On this machine, in a group of its own.

constexpr std::uint64_t kLimit = 96 * kMiB;

bool write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.flush();
  return file.good();
}

class RealGroup {
 public:
  RealGroup() {
    for (const auto& [mount, limit] : {std::pair("/sys/fs/cgroup/memory", "/memory.limit_in_bytes"),
                                       std::pair("/sys/fs/cgroup", "/memory.max")}) {
      const std::string path = std::string(mount) + "/diapause-test-" + std::to_string(::getpid());
      std::error_code failed;
      if (!std::filesystem::exists(std::string(mount) + "/cgroup.procs", failed)) continue;
      if (!std::filesystem::create_directory(path, failed) || failed) continue;
      path_ = path;
      is_limited_ = write_file(path_ + limit, std::to_string(kLimit));
      return;
    }
  }
  ~RealGroup() {
    if (!path_.empty()) ::rmdir(path_.c_str());
  }
  bool is_limited() const { return is_limited_; }
  bool enter() const { return write_file(path_ + "/cgroup.procs", std::to_string(::getpid())); }

 private:
  std::string path_;
  bool is_limited_ = false;
};

// Fills as many slots as the tier gives, as a program does that checkpoints. 0: it was told in
// time.
int fill_a_tier(const std::string& path) {
  World world(Ground::real);
  auto memory = open_tier(sys::real_kernel(), TierKind::memory, path);
  if (!memory) return 3;
  std::vector<store::Slot> slots;
  int result = 4;  // the process never told a result
  for (int i = 0; i < 20; ++i) {
    auto slot = memory->acquire(16 * kMiB, 0);
    if (!slot) {
      result = slot.error().code == Code::full ? 0 : 5;
      break;
    }
    std::memset(slot->mapping().data(), i, slot->mapping().size());
    slots.push_back(std::move(*slot));
  }
  if (slots.empty()) result = 6;
  for (store::Slot& slot : slots) memory->discard(std::move(slot));
  return result;
}

TEST(RealMemoryLimit, KillsNobody) {
  const RealGroup group;
  if (!group.is_limited())
    GTEST_SKIP() << "this machine lets nobody here make a group with a limit";
  std::string path = "/dev/shm/diapause-test-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) GTEST_SKIP() << "there is no place in memory";
  const pid_t child = ::fork();
  if (child == 0) ::_exit(group.enter() ? fill_a_tier(path) : 2);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  std::filesystem::remove_all(path);
  ASSERT_TRUE(WIFEXITED(status)) << "it was killed by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace diapause::conformance
