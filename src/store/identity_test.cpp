#include "store/identity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "store/names.hpp"

namespace diapause::store {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class IdentityOnDisk : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "diapause-identity-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  void TearDown() override { fs::remove_all(path_); }

  sys::Directory directory(const std::string& name) const {
    return std::move(*sys::Directory::make_private(sys::real_kernel(), path_ / name));
  }
  // Makes a job's directory in the root of a tier.
  format::JobIdentity bear(const std::string& root) const {
    const sys::Directory tier = directory(root);
    format::JobIdentity identity = *draw_identity("heat", tier.real_path());
    EXPECT_TRUE(write_identity(*tier.make_child(identity.key), identity, "0"));
    return identity;
  }
  Standing standing(const std::string& root) const {
    const auto found = find_jobs(directory(root), "heat");
    EXPECT_TRUE(found && found->size() == 1);
    return found->at(0).standing;
  }

  fs::path path_;
};

TEST_F(IdentityOnDisk, IsAtHomeByEveryPath) {
  const format::JobIdentity identity = bear("g");
  EXPECT_EQ(identity.key, job_key("heat", identity.id));
  EXPECT_EQ(standing("g"), Standing::home);
  fs::create_directory_symlink(path_, path_ / "link");
  EXPECT_EQ(standing("link/g"), Standing::home);
}

TEST_F(IdentityOnDisk, TellsMovedFromCopied) {
  bear("g");
  fs::copy(path_ / "g", path_ / "copy", fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(path_)) {
    if (entry.is_directory()) fs::permissions(entry, fs::perms::owner_all);
  }
  EXPECT_EQ(standing("copy"), Standing::copy);
  EXPECT_EQ(standing("g"), Standing::home);
  fs::remove_all(path_ / "g");
  EXPECT_EQ(standing("copy"), Standing::moved);
}

TEST_F(IdentityOnDisk, IsNotReadFromAPathWhereAnotherJobIsNow) {
  bear("g");
  fs::rename(path_ / "g", path_ / "moved");
  bear("g");
  EXPECT_EQ(standing("moved"), Standing::moved);
}

TEST_F(IdentityOnDisk, IsMissingInTheDirectoriesOfOlderReleases) {
  const sys::Directory root = directory("g");
  ASSERT_TRUE(root.make_child(old_job_key("heat", "/scratch/a")));
  ASSERT_TRUE(root.make_child(old_job_key("heat-2", "/scratch/a")));
  const auto found = find_jobs(root, "heat");
  ASSERT_TRUE(found && found->size() == 1);
  EXPECT_EQ(found->at(0).standing, Standing::unnamed);
  EXPECT_EQ(found->at(0).directory, old_job_key("heat", "/scratch/a"));
}

TEST_F(IdentityOnDisk, OfALinkInTheJobsPlaceIsAsked) {
  const sys::Directory root = directory("g");
  fs::create_directory_symlink(path_, path_ / "g" / "heat-01234567");
  const auto found = find_jobs(root, "heat");
  ASSERT_TRUE(found && found->size() == 1);
  EXPECT_FALSE(found->at(0).trouble.empty());
}

TEST_F(IdentityOnDisk, RootsOfOtherUsersAreLeftAlone) {
  const std::string usual = path_ / "diapause-1";
  EXPECT_EQ(own_root(sys::real_kernel(), usual), usual);
  fs::create_directory(usual);
  fs::permissions(usual, fs::perms::all);  // it is now as bad as another user's
  EXPECT_EQ(own_root(sys::real_kernel(), usual), usual + "-1");
  directory("diapause-1-1");
  fs::permissions(usual, fs::perms::owner_all);
  EXPECT_EQ(own_root(sys::real_kernel(), usual), usual);
  fs::remove(usual);
  EXPECT_EQ(own_root(sys::real_kernel(), usual), usual + "-1") << "what is there is found again";
}

TEST_F(IdentityOnDisk, OfAMachineThatIsCalledOtherwiseKeepsItsDirectories) {
  const sys::Directory job = directory("memory/heat-01234567");
  directory("memory/heat-01234567/yesterday");
  directory("memory/heat-01234567/other");
  EXPECT_THAT(*take_over_renamed(job, "today", {"today", "other"}), ElementsAre("yesterday"));
  EXPECT_TRUE(fs::exists(path_ / "memory/heat-01234567/today"));
  EXPECT_FALSE(fs::exists(path_ / "memory/heat-01234567/yesterday"));
  EXPECT_THAT(*take_over_renamed(job, "today", {"today", "other"}), IsEmpty());
}

TEST_F(IdentityOnDisk, OfAMachineDoesNotTakeWhatIsInUse) {
  const sys::Directory job = directory("memory/heat-01234567");
  const sys::Directory used = directory("memory/heat-01234567/yesterday");
  const auto lock = sys::FileLock::acquire(used, kLockName, "a job\n", 0);
  ASSERT_TRUE(lock);
  EXPECT_THAT(*take_over_renamed(job, "today", {"today"}), IsEmpty());
  EXPECT_TRUE(fs::exists(path_ / "memory/heat-01234567/yesterday"));
}

}  // namespace
}  // namespace diapause::store
