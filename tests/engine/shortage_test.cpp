// A system that is short of something when a job is started again: nothing can be concluded from
// that about what lies on the disks, so nothing is given up, and nothing older is taken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/cluster.hpp"

namespace diapause::test_support {
namespace {

using ::testing::HasSubstr;

Shape shape_of(std::uint32_t ranks) {
  Shape shape;
  shape.ranks = ranks;
  shape.ranks_per_node = 1;
  shape.elements = 300;
  return shape;
}

// Every call that a restart makes fails once.
void sweep(const Shape& shape, int level, int error) {
  for (std::uint64_t call = 0;; ++call) {
    VolatileDisk disk;
    checkpoint_job(disk, shape, {{1, level}, {2, level}});
    FaultKernel kernel(disk, {Fault::fail_once, call, Call::any, error});
    const Restarted restarted = restart_job(kernel, shape);
    EXPECT_TRUE(restarted.intact) << call;
    if (restarted.status) {
      EXPECT_EQ(restarted.version, 2u) << call << ": " << restarted.reason;
    } else {
      EXPECT_TRUE(is_of_the_moment(restarted.status.error().code))
          << call << ": " << restarted.status.error().message;
    }
    const Restarted later = restart_job(disk, shape);
    ASSERT_TRUE(later.status) << call << ": " << later.status.error().message;
    EXPECT_EQ(later.version, 2u) << call;
    EXPECT_TRUE(later.intact) << call;
    if (!kernel.reached() || testing::Test::HasFailure()) break;
  }
}

TEST(Shortage, OfDescriptorsIsNoDamage) { sweep(shape_of(1), 1, EMFILE); }
TEST(Shortage, OfMemoryIsNoDamage) { sweep(shape_of(1), 4, ENOMEM); }
TEST(Shortage, OfRoomIsNoDamage) { sweep(shape_of(1), 1, ENOSPC); }
TEST(Shortage, OfOneOfTwoNodesIsNoDamage) { sweep(shape_of(2), 2, ENFILE); }

TEST(Shortage, IsToldWithWhatToDo) {
  VolatileDisk disk;
  const Shape shape = shape_of(1);
  checkpoint_job(disk, shape, {{1, 1}, {2, 1}});
  const Status opened = run_job(disk, shape, [](library::Engine&, Program&, std::uint32_t) {});
  ASSERT_TRUE(opened);
  for (std::uint64_t call = 0; call < 400; ++call) {
    FaultKernel kernel(disk, {Fault::fail_once, call, Call::openat, EMFILE});
    const Restarted restarted = restart_job(kernel, shape);
    if (restarted.status || restarted.status.error().code != Code::again) continue;
    if (restarted.status.error().message.find("try again") == std::string::npos) continue;
    EXPECT_THAT(restarted.status.error().message,
                HasSubstr("nothing of 'job' was given up or removed"));
    return;
  }
  ADD_FAILURE() << "no restart failed for want of a descriptor";
}

TEST(Shortage, IsNotedForWhoeverStartsTheProgramAgain) {
  const std::string note = "/note";
  bool is_noted = false;
  for (std::uint64_t call = 0; call < 400 && !is_noted; ++call) {
    VolatileDisk disk;
    Shape shape = shape_of(1);
    checkpoint_job(disk, shape, {{2, 1}});
    const auto root = sys::Directory::open_private(disk, "/");
    ASSERT_TRUE(root && root->create_file("note"));
    shape.adjust = [note](library::OpenRequest& request, std::uint32_t) {
      request.environment.emplace_back("DIAPAUSE_RUN_AGAIN_FILE", note);
    };
    FaultKernel kernel(disk, {Fault::fail_from_here, call, Call::openat, EMFILE});
    const Restarted restarted = restart_job(kernel, shape);
    if (!kernel.reached()) break;
    is_noted = !restarted.status && !disk.read_content(note)->empty();
  }
  EXPECT_TRUE(is_noted);
}

}  // namespace
}  // namespace diapause::test_support
