// Tests what a start clears away of a level that its predecessor died on the way to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/cluster.hpp"

namespace diapause::test_support {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;

// Leaves the files of a process that dies between the last image in the global directory and its
// manifest.
void die_before_the_manifest(VolatileDisk& disk) {
  for (const std::string& path : files_matching(disk, "/home/job/diapause/")) {
    if (path.find("/manifest.") != path.npos) {
      ASSERT_TRUE(disk.erase(path));
    }
  }
}

TEST(Leftovers, OfLevel4GoAtTheNextStartThatRestarts) {
  VolatileDisk disk;
  const Shape shape;
  checkpoint_job(disk, shape, {{7, 4}});
  die_before_the_manifest(disk);
  ASSERT_THAT(files_matching(disk, "/home/job/diapause/"), Not(IsEmpty()));
  const Restarted restarted = restart_job(disk, shape);
  ASSERT_TRUE(restarted.status) << restarted.status.error().message;
  EXPECT_EQ(restarted.version, 7u);
  for (const std::string& path : files_matching(disk, "/home/job/diapause/"))
    EXPECT_EQ(path.find("/v7-"), path.npos) << path;
}

TEST(Leftovers, OfLevel4StayAsLongAsARestartNeedsThem) {
  VolatileDisk disk;
  const Shape shape;
  checkpoint_job(disk, shape, {{7, 4}});
  die_before_the_manifest(disk);
  ASSERT_TRUE(disk.erase(node_directory(disk, "node1")));
  const Restarted restarted = restart_job(disk, shape);
  ASSERT_TRUE(restarted.status) << restarted.status.error().message;
  EXPECT_EQ(restarted.version, 7u);
  EXPECT_TRUE(restarted.intact);
}

}  // namespace
}  // namespace diapause::test_support
