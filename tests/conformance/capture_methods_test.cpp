// Tests when each way of capturing is taken, refused and given up, and what it then costs.
// capture_conformance_test.cpp tests that their images are right.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "capture/copy_on_write.hpp"
#include "conformance/capture_world.hpp"
#include "sys/page_scan.hpp"
#include "sys/userfault.hpp"

namespace diapause::capture {
namespace {

using config::CaptureStrategy;
using policy::CaptureMethod;
using testing::ElementsAre;
using testing::HasSubstr;

bool can(sys::Userfault::Mode mode) { return sys::Userfault::open(mode).has_value(); }

class CopyOnWriteTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!can(sys::Userfault::Mode::stop_writers))
      GTEST_SKIP() << "this machine does not let us stop writers";
  }
  CaptureWorld world_{{"", CaptureStrategy::copy_on_write}};
};

class TrackingTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!can(sys::Userfault::Mode::note_writes))
      GTEST_SKIP() << "this machine does not track writes";
  }
  CaptureWorld world_{{"", CaptureStrategy::incremental}};
};

TEST_F(CopyOnWriteTest, CopiesAllPagesInTheBackground) {
  world_.add(8 * kMiB);
  world_.expect_captured(0);
  EXPECT_EQ(world_.report().method, CaptureMethod::copy_on_write);
  EXPECT_EQ(world_.report().copied_in_begin, 0U);
  EXPECT_EQ(world_.report().copied_in_drain, 8 * kMiB);
  EXPECT_EQ(world_.report().faults, 0U);
}

TEST_F(CopyOnWriteTest, MakesAWriterWaitOnceForEachUnit) {
  const MutableBytes memory = world_.add(8 * kMiB);
  ASSERT_TRUE(world_.begin(0));
  world_.dice().fill(memory.first(2 * kMiB));
  world_.dice().fill(memory.first(2 * kMiB));
  world_.expect_drained();
  EXPECT_GE(world_.report().faults, 1U);
  EXPECT_LE(world_.report().faults, 8U);
}

TEST_F(CopyOnWriteTest, IsAheadOfAWriterThatGoesThroughTheMemory) {
  const MutableBytes memory = world_.add(8 * kMiB);
  ASSERT_TRUE(world_.begin(0));
  for (std::uint64_t at = 0; at < memory.size(); at += 64 * 1024) memory[at] ^= std::byte{1};
  world_.expect_drained();
  EXPECT_GE(world_.report().faults, 1U);
  EXPECT_LE(world_.report().faults, 8U) << "of 32 units";
}

TEST_F(CopyOnWriteTest, CopiesAtOnceWhatLiesBesideWholePages) {
  world_.add(2 * kMiB + 10, 100);
  world_.expect_captured(0);
  EXPECT_EQ(world_.report().copied_in_begin + world_.report().copied_in_drain, 2 * kMiB + 10);
  EXPECT_EQ(world_.report().copied_in_begin, 4096U - 100 + 110);
}

// Memory that has hardly changed for some captures.
class StillMemory : public CopyOnWriteTest {
 protected:
  void SetUp() override {
    CopyOnWriteTest::SetUp();
    if (IsSkipped()) return;
    for (int i = 0; i < 3; ++i) world_.expect_captured(0);
  }
  // Returns the part of the memory that is not protected, as offsets.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> unprotected() const {
    const sys::PageRange all = sys::whole_pages_in(memory_);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> offsets;
    const auto found = sys::PageScan::open()->unprotected(all);
    for (const sys::PageRange& range : found.value())
      offsets.emplace_back(range.begin - all.begin, range.end - all.begin);
    return offsets;
  }
  MutableBytes memory_ = world_.add(16 * kMiB);
  static constexpr std::uint64_t kUnit = CopyOnWrite::kUnitBytes;
};

TEST_F(StillMemory, StaysProtectedAfterItsCapture) { EXPECT_THAT(unprotected(), ElementsAre()); }

TEST_F(StillMemory, IsReleasedWhereItIsWrittenToAndCapturedAsItIsThen) {
  memory_[5 * kMiB] ^= std::byte{1};
  EXPECT_THAT(unprotected(), ElementsAre(std::pair(5 * kMiB, 5 * kMiB + kUnit)));
  world_.expect_captured(0);
  EXPECT_THAT(unprotected(), ElementsAre());
}

TEST_F(StillMemory, MakesAWriterWaitThatFollowsItsCapture) {
  ASSERT_TRUE(world_.begin(0));
  std::thread writer([this] { world_.dice().fill(memory_.first(4 * kMiB)); });
  world_.expect_drained();
  writer.join();
  world_.expect_captured(0);
}

TEST_F(StillMemory, IsReleasedMoreAndMoreAtATimeForAWriterThatGoesThroughIt) {
  std::uint64_t at = 0;
  for (const std::uint64_t units : {1, 2, 4, 8}) {
    memory_[at] ^= std::byte{1};
    at += units * kUnit;
    EXPECT_THAT(unprotected(), ElementsAre(std::pair<std::uint64_t, std::uint64_t>(0, at)));
  }
  for (std::uint64_t behind = at; behind < memory_.size(); behind += kPageBytes)
    memory_[behind] ^= std::byte{1};
  EXPECT_THAT(unprotected(),
              ElementsAre(std::pair<std::uint64_t, std::uint64_t>(0, memory_.size())));
  world_.expect_captured(0);
}

TEST_F(StillMemory, IsNotKeptProtectedAnyMoreOnceItChanges) {
  for (int i = 0; i < 2; ++i) {
    world_.dice().fill(memory_);
    world_.expect_captured(0);
  }
  EXPECT_THAT(unprotected(),
              ElementsAre(std::pair<std::uint64_t, std::uint64_t>(0, memory_.size())));
}

TEST_F(StillMemory, MayBeReplacedBetweenTwoCaptures) {
  void* const again = ::mmap(memory_.data() + 5 * kMiB, kMiB, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  ASSERT_EQ(again, memory_.data() + 5 * kMiB);
  ASSERT_EQ(::madvise(memory_.data() + 9 * kMiB, kMiB, MADV_DONTNEED), 0);
  world_.dice().fill(memory_.subspan(5 * kMiB, 100));
  world_.dice().fill(memory_.subspan(9 * kMiB, 100));
  world_.expect_captured(0);
  EXPECT_EQ(world_.report().method, CaptureMethod::copy_on_write);
}

TEST_F(StillMemory, MayGoWhenItIsNoRegionAnyMore) {
  world_.remove(0);
  world_.dice().fill(memory_.first(100));
  world_.expect_captured(0);
  EXPECT_THAT(unprotected(),
              ElementsAre(std::pair<std::uint64_t, std::uint64_t>(0, memory_.size())));
}

// The program does this to memory that it should have unprotected first.
class LostMemory : public CopyOnWriteTest {
 protected:
  void expect_noticed_and_gone_on() {
    const auto drained = world_.capturer().drain();
    ASSERT_FALSE(drained);
    EXPECT_THAT(drained.error().message, HasSubstr("unprotect a region before its memory goes"));
    world_.replace(0, other_.bytes());
    world_.expect_captured(0);
    EXPECT_EQ(world_.report().method, CaptureMethod::copy);
    EXPECT_THAT(world_.report().reason, HasSubstr("gave protected memory back"));
  }
  MutableBytes memory_ = world_.add(8 * kMiB);
  const Arena other_{8 * kMiB};
};

TEST_F(LostMemory, ThatWasUnmappedFailsTheCapture) {
  ASSERT_TRUE(world_.begin(0));
  ::munmap(memory_.data() + 5 * kMiB, kMiB);
  expect_noticed_and_gone_on();
}

TEST_F(LostMemory, ThatWasReplacedFailsTheCapture) {
  ASSERT_TRUE(world_.begin(0));
  void* const again = ::mmap(memory_.data() + 5 * kMiB, kMiB, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  ASSERT_EQ(again, memory_.data() + 5 * kMiB);
  expect_noticed_and_gone_on();
}

TEST_F(LostMemory, ThatWasThrownAwayFailsTheCapture) {
  ASSERT_TRUE(world_.begin(0));
  ASSERT_EQ(::madvise(memory_.data() + 5 * kMiB, kPageBytes, MADV_DONTNEED), 0);
  expect_noticed_and_gone_on();
}

TEST_F(LostMemory, ThatWasThrownAwayBeforehandIsCapturedAsItIs) {
  ASSERT_EQ(::madvise(memory_.data() + 5 * kMiB, kMiB, MADV_DONTNEED), 0);
  world_.expect_captured(0);
}

TEST_F(CopyOnWriteTest, EndsWithAProcessThatExitsWhileWritersWait) {
  const auto exit_while_armed = [] {
    CaptureWorld world({"", CaptureStrategy::copy_on_write});
    const MutableBytes memory = world.add(8 * kMiB);
    if (!world.begin(0)) ::_exit(1);
    std::thread([memory] { Dice().fill(memory); }).detach();
    ::_exit(0);
  };
  EXPECT_EXIT(exit_while_armed(), testing::ExitedWithCode(0), "");
}

// Returns why a region of that memory was not taken by copy-on-write. Its image is right all the
// same.
std::string refusal_for(MutableBytes memory, bool devices = false) {
  CaptureWorld world({"", CaptureStrategy::copy_on_write, devices});
  world.add_at(memory);
  world.expect_captured(0);
  EXPECT_EQ(world.report().method, CaptureMethod::copy);
  return world.report().reason;
}

TEST_F(CopyOnWriteTest, IsRefusedForMemoryOfAFile) {
  const int file = ::memfd_create("memory", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(file, 4 * kMiB), 0);
  for (const int sharing : {MAP_SHARED, MAP_PRIVATE}) {
    void* memory = ::mmap(nullptr, 4 * kMiB, PROT_READ | PROT_WRITE, sharing, file, 0);
    ASSERT_NE(memory, MAP_FAILED);
    EXPECT_THAT(refusal_for({static_cast<std::byte*>(memory), 4 * kMiB}),
                HasSubstr("not private anonymous memory"));
    ::munmap(memory, 4 * kMiB);
  }
  ::close(file);
}

TEST_F(CopyOnWriteTest, IsRefusedForMemoryThatOtherProcessesSee) {
  void* memory = ::mmap(nullptr, kMiB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT_THAT(refusal_for({static_cast<std::byte*>(memory), kMiB}),
              HasSubstr("not private anonymous memory"));
  ::munmap(memory, kMiB);
}

TEST_F(CopyOnWriteTest, IsRefusedForMemoryThatDevicesWriteTo) {
  const Arena arena(kMiB);
  EXPECT_THAT(refusal_for(arena.bytes(), true), HasSubstr("devices may write to it"));
}

TEST_F(CopyOnWriteTest, IsRefusedWithoutAWholePage) {
  const Arena arena(kPageBytes);
  EXPECT_THAT(refusal_for(arena.bytes().subspan(1)), HasSubstr("no whole page"));
}

TEST_F(CopyOnWriteTest, IsRefusedForMemoryThatTheProgramWatchesItself) {
  const Arena arena(kMiB);
  const auto other = sys::Userfault::open(sys::Userfault::Mode::stop_writers);
  ASSERT_TRUE(other->add(sys::whole_pages_in(arena.bytes())));
  EXPECT_THAT(refusal_for(arena.bytes()), HasSubstr("cannot watch memory"));
}

// Makes a system call fail with EPERM in this process, as the sandboxes of containers do.
void forbid(std::uint32_t system_call) {
  std::array<sock_filter, 4> filter = {
      {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, system_call, 0, 1),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
  const sock_fprog program{filter.size(), filter.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    ::_exit(2);
  }
}

// Runs a capture in a process of its own after `prepare`; its exit status says what became of it.
void capture_and_exit(CaptureStrategy strategy, void (*prepare)(),
                      const std::string& expected_reason) {
  prepare();
  CaptureWorld world({"", strategy});
  world.add(4 * kMiB);
  world.expect_captured(0);
  world.expect_captured(0);
  if (world.report().reason.find(expected_reason) == std::string::npos) {
    std::fprintf(stderr, "%s\n", world.report().reason.c_str());
    ::_exit(1);
  }
  ::_exit(testing::Test::HasFailure() ? 1 : 0);
}

void in_a_sandbox() {
  // The device would be a way around.
  if (::setuid(65534) != 0) ::_exit(2);
  forbid(SYS_userfaultfd);
}
// A process that is not dumpable, as after every change of user, could not even look at itself in
// /proc.
void as_nobody() {
  if (::setuid(65534) != 0 || ::prctl(PR_SET_DUMPABLE, 1) != 0) ::_exit(2);
}

class WithoutPrivileges : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give up privileges";
  }
};

TEST_F(WithoutPrivileges, CopyOnWriteIsRefusedAndSaysWhatWouldHelp) {
  EXPECT_EXIT(
      capture_and_exit(CaptureStrategy::copy_on_write, as_nobody, "vm.unprivileged_userfaultfd"),
      testing::ExitedWithCode(0), "");
}

TEST_F(WithoutPrivileges, WritesAreTrackedAllTheSame) {
  if (!can(sys::Userfault::Mode::note_writes)) GTEST_SKIP() << "this machine does not track writes";
  EXPECT_EXIT(capture_and_exit(CaptureStrategy::incremental, as_nobody, "capture.strategy is"),
              testing::ExitedWithCode(0), "");
}

TEST_F(WithoutPrivileges, ASandboxWithoutUserfaultfdCostsTheStrategyAndNothingElse) {
  EXPECT_EXIT(capture_and_exit(CaptureStrategy::copy_on_write, in_a_sandbox, "no copy-on-write"),
              testing::ExitedWithCode(0), "");
  EXPECT_EXIT(capture_and_exit(CaptureStrategy::incremental, in_a_sandbox,
                               "by checksum: userfaultfd is refused"),
              testing::ExitedWithCode(0), "");
}

TEST_F(TrackingTest, CopiesOnlyTheBlocksThatWereWritten) {
  const MutableBytes memory = world_.add(20 * kMiB);
  world_.expect_captured(0);
  EXPECT_EQ(world_.report().copied_in_begin, 20 * kMiB);
  memory[3 * kMiB] = std::byte{1};
  memory[7 * kMiB - 1] = std::byte{2};
  world_.expect_captured(0);
  EXPECT_EQ(world_.report().copied_in_begin, 2 * kMiB);
  world_.expect_captured(0);
  EXPECT_EQ(world_.report().copied_in_begin, 0U);
}

TEST_F(TrackingTest, CopiesWhatChangedSinceTheSlotWasFilled) {
  const MutableBytes memory = world_.add(20 * kMiB);
  world_.expect_captured(0);
  memory[0] ^= std::byte{1};
  world_.expect_captured(1);
  memory[kMiB] ^= std::byte{1};
  world_.expect_captured(1);
  EXPECT_EQ(world_.report().copied_in_begin, kMiB);
  world_.expect_captured(0);
  EXPECT_EQ(world_.report().copied_in_begin, 2 * kMiB);
}

TEST_F(TrackingTest, SeesWhatTheKernelWrites) {
  const MutableBytes memory = world_.add(4 * kMiB);
  world_.expect_captured(0);
  const int random = ::open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::read(random, memory.data() + kMiB, 100), 100);
  const int own = ::open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::pwrite(own, "hello", 5, reinterpret_cast<off_t>(memory.data() + 2 * kMiB)), 5);
  ::close(random);
  ::close(own);
  world_.expect_captured(0);
  EXPECT_EQ(world_.report().copied_in_begin, 2 * kMiB);
}

TEST_F(TrackingTest, IsGivenUpForMemoryThatDevicesWriteToAndChecksumsTellInstead) {
  world_.way.devices = true;
  const MutableBytes memory = world_.add(20 * kMiB);
  world_.expect_captured(0);
  memory[5 * kMiB] ^= std::byte{1};
  world_.expect_captured(0);
  EXPECT_EQ(world_.report().copied_in_begin, kMiB);
  EXPECT_THAT(world_.report().reason, HasSubstr("by checksum: devices may write to it"));
}

// Writes as a device does, so the kernel's notes do not know of it.
void write_unseen(MutableBytes memory) {
  for (std::byte& byte : memory) byte ^= std::byte{0x55};
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data()) / kPageBytes * kPageBytes;
  ASSERT_TRUE(sys::PageScan::open()->written_and_protect({begin, begin + kPageBytes}));
}

TEST_F(TrackingTest, IsTurnedOffForGoodWhenAnAuditFindsAChangeThatItMissed) {
  CaptureWorld world({"", CaptureStrategy::incremental}, 50);
  const MutableBytes memory = world.add(2 * kMiB);
  const MutableBytes other = world.add(2 * kMiB);
  world.expect_captured(0);
  world.expect_captured(0);
  EXPECT_EQ(world.report().copied_in_begin,
            0U);  // half of it was looked at: the other half is next
  write_unseen(memory.subspan(kMiB, 1000));
  world.expect_captured(0);
  EXPECT_THAT(world.report(0).reason, HasSubstr("tracking"));
  EXPECT_EQ(world.report(1).copied_in_begin, other.size());
  ASSERT_EQ(world.warnings().size(), 1U);
  EXPECT_THAT(world.warnings()[0],
              HasSubstr("region r0 was written in a way that write tracking does not see"));
  memory[0] ^= std::byte{1};
  world.expect_captured(0);
  EXPECT_THAT(world.report(0).reason, HasSubstr("changes found by checksum"));
  EXPECT_EQ(world.report(0).copied_in_begin, kMiB);
}

TEST_F(TrackingTest, MendsASlotThatAnAuditFindsDamaged) {
  CaptureWorld world({"", CaptureStrategy::incremental}, 100);
  world.add(4 * kMiB);
  world.expect_captured(0);
  world.slot(0)[kPageBytes + 2 * kMiB + 7] ^= std::byte{1};
  world.expect_captured(0);
  ASSERT_EQ(world.warnings().size(), 1U);
  EXPECT_THAT(world.warnings()[0], HasSubstr("1 damaged blocks of region r0"));
}

TEST(ConstantMemory, IsCopiedOnceIntoEachSlot) {
  CaptureWorld world({"", CaptureStrategy::automatic, false, Declaration::constant});
  world.add(4 * kMiB);
  for (const std::size_t slot : {0, 1}) {
    world.expect_captured(slot);
    EXPECT_EQ(world.report().method, CaptureMethod::background);
    EXPECT_EQ(world.report().copied_in_drain, 4 * kMiB);
  }
  for (const std::size_t slot : {0, 1}) {
    world.expect_captured(slot);
    EXPECT_EQ(world.report().copied_in_begin + world.report().copied_in_drain, 0U);
  }
}

TEST(ConstantMemory, IsCopiedAnewWhenAnAuditFindsItChanged) {
  CaptureWorld world({"", CaptureStrategy::automatic, false, Declaration::constant}, 1);
  const MutableBytes memory = world.add(kMiB);
  world.expect_captured(0);
  memory[7] ^= std::byte{1};
  world.expect_captured(0);
  EXPECT_THAT(world.warnings(),
              ElementsAre(HasSubstr("region r0 is declared constant and has changed")));
}

TEST(StableMemory, IsCopiedInTheBackgroundEveryTime) {
  CaptureWorld world({"", CaptureStrategy::automatic, false, Declaration::stable});
  const MutableBytes memory = world.add(4 * kMiB);
  for (int round = 0; round < 2; ++round) {
    world.expect_captured(0);
    EXPECT_EQ(world.report().copied_in_begin, 0U);
    EXPECT_EQ(world.report().copied_in_drain, 4 * kMiB);
    memory[7] ^= std::byte{1};
  }
}

TEST(TheAutomaticChoice, BeginsWithACopyAndSaysWhy) {
  CaptureWorld world;
  world.add(8 * kMiB);
  world.expect_captured(0);
  EXPECT_EQ(world.report().method, CaptureMethod::copy);
  EXPECT_EQ(world.report().copied_in_begin, 8 * kMiB);
  EXPECT_THAT(world.report().reason, HasSubstr("nothing is known"));
  EXPECT_FALSE(world.report().changed.has_value());
}

TEST(TheAutomaticChoice, LearnsFromChecksumsHowMuchChanges) {
  CaptureWorld world;
  const MutableBytes memory = world.add(8 * kMiB);
  world.expect_captured(0);
  memory[0] ^= std::byte{1};
  memory[4 * kMiB] ^= std::byte{1};
  world.expect_captured(0);
  EXPECT_EQ(world.report().changed, 0.25);
  world.expect_captured(0);
  EXPECT_THAT(world.report().reason, HasSubstr("25 % changed"));
}

}  // namespace
}  // namespace diapause::capture
