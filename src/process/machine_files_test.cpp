#include "process/machine_files.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace diapause::process {
namespace {

using testing::ElementsAre;

TEST(FilesOfAMachine, AreThoseOfTheOwnControlGroupOrOneAboveIt) {
  EXPECT_THAT(paths_in_groups("0::/job/step\n", "cpu.max"),
              ElementsAre("/sys/fs/cgroup/job/step/cpu.max", "/sys/fs/cgroup/job/cpu.max",
                          "/sys/fs/cgroup/cpu.max"));
  EXPECT_THAT(paths_in_groups("4:cpu,cpuacct:/a\n3:memory:/\n", "x"),
              ElementsAre("/sys/fs/cgroup/cpu,cpuacct/a/x", "/sys/fs/cgroup/cpu,cpuacct/x",
                          "/sys/fs/cgroup/memory/x"));
  EXPECT_THAT(paths_in_groups("", "x"), ElementsAre());
  EXPECT_THAT(paths_in_groups("no group\n5:\n", "x"), ElementsAre());
}

TEST(FilesOfAMachine, ThatNoMachineHasAreEmpty) {
  const auto instead = open_instead("/sys/class/no/such/file", O_RDONLY);
  ASSERT_TRUE(instead);
  EXPECT_EQ(instead->path, "/dev/null");
  ::close(instead->file);
}

TEST(FilesOfAMachine, AreOpenedByTheirPathWhereTheyAre) {
  EXPECT_FALSE(open_instead("/sys/devices/system/cpu/possible", O_RDONLY));
  EXPECT_FALSE(open_instead("/no/such/file", O_RDONLY));
}

}  // namespace
}  // namespace diapause::process
