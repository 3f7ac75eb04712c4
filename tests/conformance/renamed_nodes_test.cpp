// Two machines that have new names start at once, and both look for what they left under the old
// ones.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "store/identity.hpp"
#include "support/fault_kernel.hpp"
#include "support/volatile_disk.hpp"

namespace diapause::test_support {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::set<std::string> kNames = {"c", "d"};  // names of the nodes that exist

sys::Directory open_job(sys::Kernel& kernel) {
  auto root = sys::Directory::make_private(kernel, "/memory");
  return *root->make_child("job");
}

void leave_version(sys::Kernel& kernel, const std::string& node, const std::string& file) {
  const auto place = open_job(kernel).make_child(node);
  const auto spare = place->make_child("spare");
  ASSERT_TRUE(spare->create_file("o0-0"));
  const auto version = place->make_child("v1-i1-00000001d25111d8cfde66349864d36e");
  ASSERT_TRUE(version->create_file(file));
}

bool is_there(sys::Kernel& kernel, const std::string& path) {
  struct stat status;
  return kernel.fstatat(AT_FDCWD, ("/memory/job/" + path).c_str(), &status) == 0;
}

TEST(RenamedNodes, FindNothingOfADirectoryThatIsBeingRemoved) {
  VolatileDisk disk;
  leave_version(disk, "a", "r0.img");
  leave_version(disk, "b", "r1.img");
  FaultKernel kernel(disk, {Fault::stop, 0, Call::unlinkat, EIO});
  EXPECT_FALSE(store::take_over_renamed(open_job(kernel), "c", kNames));
  ASSERT_TRUE(kernel.stopped());
  EXPECT_THAT(*store::take_over_renamed(open_job(disk), "d", kNames), IsEmpty());
  const std::string version = "c/v1-i1-00000001d25111d8cfde66349864d36e/";
  EXPECT_TRUE(is_there(disk, version + "r0.img") && is_there(disk, version + "r1.img"));
}

TEST(RenamedNodes, LeaveWhatAnotherHasTakenWhileTheyWereAboutToLockIt) {
  VolatileDisk disk;
  leave_version(disk, "a", "r0.img");
  ASSERT_TRUE(open_job(disk).make_child("d"));
  FaultKernel kernel(disk);
  kernel.record_trace("/memory/job");
  kernel.hold(Call::openat, "a/lock");
  std::thread late(
      [&] { EXPECT_THAT(*store::take_over_renamed(open_job(kernel), "d", kNames), IsEmpty()); });
  while (!testing::Value(kernel.trace(), testing::Contains(HasSubstr("openat a"))))
    std::this_thread::yield();
  EXPECT_THAT(*store::take_over_renamed(open_job(disk), "c", kNames), ElementsAre("a"));
  kernel.release();
  late.join();
  EXPECT_TRUE(is_there(disk, "c/v1-i1-00000001d25111d8cfde66349864d36e/r0.img"));
  EXPECT_FALSE(is_there(disk, "d/v1-i1-00000001d25111d8cfde66349864d36e"));
}

}  // namespace
}  // namespace diapause::test_support
