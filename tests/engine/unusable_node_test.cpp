// A node whose directory cannot be used counts as lost for reading: the others have what a restart
// needs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "engine/cluster.hpp"

namespace diapause::test_support {
namespace {

using ::testing::HasSubstr;

class UnusableNode : public ::testing::TestWithParam<int> {};

TEST_P(UnusableNode, CountsAsLostAndTheProgramRunsOn) {
  VolatileDisk disk;
  const Shape shape;
  checkpoint_job(disk, shape, {{7, GetParam()}});
  const std::string place = node_directory(disk, "node1");
  ASSERT_TRUE(disk.set_owner(place.substr(0, place.size() - 1), 4711));

  std::mutex mutex;
  std::string said;
  Shape loud = shape;
  loud.log = [&](Severity, const std::string& line) {
    const std::lock_guard lock(mutex);
    said += line + "\n";
  };
  const Restarted restarted = restart_job(disk, loud);
  ASSERT_TRUE(restarted.status) << restarted.status.error().message;
  EXPECT_EQ(restarted.version, 7u);
  EXPECT_TRUE(restarted.intact);
  EXPECT_THAT(said, HasSubstr("belongs to user 4711"));
  EXPECT_THAT(restarted.reason, HasSubstr("belongs to user 4711"));
}

INSTANTIATE_TEST_SUITE_P(Levels, UnusableNode, ::testing::Values(2, 3, 4));

TEST(UnusableNodes, WithoutACopyElsewhereIsStillNoReasonToBeginAnew) {
  VolatileDisk disk;
  const Shape shape;
  checkpoint_job(disk, shape, {{7, 1}});
  const std::string place = node_directory(disk, "node1");
  ASSERT_TRUE(disk.set_owner(place.substr(0, place.size() - 1), 4711));
  const Restarted restarted = restart_job(disk, shape);
  ASSERT_FALSE(restarted.status);
  EXPECT_NE(restarted.status.error().code, Code::not_found);
  EXPECT_TRUE(restarted.intact);
}

}  // namespace
}  // namespace diapause::test_support
