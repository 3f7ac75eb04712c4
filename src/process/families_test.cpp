#include "process/families.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace diapause::process {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

Process family_member(std::uint32_t id, std::uint32_t parent, std::uint32_t group,
                      std::uint32_t session) {
  Process process;
  process.id = id;
  process.parent = parent;
  process.group = group;
  process.session = session;
  process.threads.emplace_back().id = id;
  return process;
}

TEST(Families, AreBornIntoTheSessionThatTheirOlderChildrenAreIn) {
  Job job;
  job.processes = {family_member(7, 1, 7, 7), family_member(8, 7, 5, 5), family_member(9, 7, 7, 7)};
  EXPECT_EQ(birth_session(job, job.processes[0]), 5u);
  EXPECT_EQ(birth_session(job, job.processes[1]), 5u);
  EXPECT_TRUE(is_born_before(job.processes[0], 5u));
  EXPECT_FALSE(is_born_before(job.processes[0], 7u));
  EXPECT_FALSE(is_born_before(job.processes[0], std::nullopt));
  EXPECT_FALSE(has_session_leader(job, 5));
  EXPECT_TRUE(has_session_leader(job, 7));
  EXPECT_THAT(troubles_of_families(job), IsEmpty());
}

TEST(Families, CanBeOfDaemonsAndOfGroupsWithoutTheirFirstProcess) {
  Job job;
  job.processes = {family_member(7, 1, 0, 0), family_member(20, 1, 19, 19),
                   family_member(21, 7, 22, 0)};
  EXPECT_THAT(troubles_of_families(job), IsEmpty());
  EXPECT_FALSE(has_group_leader(job, 22));
  EXPECT_EQ(unused_id(job), 2u);
}

TEST(Families, CannotBeOfChildrenThatWereTakenOverFromAnotherSession) {
  Job job;
  job.processes = {family_member(7, 1, 0, 0), family_member(8, 7, 5, 5)};
  EXPECT_THAT(troubles_of_families(job), SizeIs(1));
  job.processes = {family_member(7, 1, 7, 7), family_member(8, 7, 5, 5), family_member(9, 7, 6, 6)};
  EXPECT_THAT(troubles_of_families(job), SizeIs(1));
}

TEST(Families, CannotBeOfAGroupThatItsFirstProcessHasLeft) {
  Job job;
  job.processes = {family_member(7, 1, 0, 0), family_member(8, 7, 8, 0), family_member(9, 7, 7, 0)};
  EXPECT_THAT(troubles_of_families(job), SizeIs(1));
}

}  // namespace
}  // namespace diapause::process
