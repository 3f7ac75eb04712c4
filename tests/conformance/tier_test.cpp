// Tests what the engine may expect of any tier, wherever it lies.
#include <fcntl.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <tuple>

#include "conformance/tier_world.hpp"
#include "store/identity.hpp"
#include "store/names.hpp"
#include "support/fault_kernel.hpp"
#include "support/file_helpers.hpp"
#include "support/value_of.hpp"

namespace diapause::conformance {
namespace {

using config::TierKind;
using store::FoundVersion;
using store::Slot;
using store::Tier;
using test_support::code_of;
using test_support::message_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class TierTest : public testing::TestWithParam<std::tuple<TierKind, Ground>> {
 protected:
  TierTest() : world_(std::get<Ground>(GetParam())) {}

  TierKind kind() const { return std::get<TierKind>(GetParam()); }
  Result<Tier> open(bool create = true) {
    return open_tier(world_.kernel(), kind(), world_.root(), create);
  }
  Tier opened() { return test_support::value_of(open()); }

  static Stored stored(Tier& tier, const Content& content) {
    return test_support::value_of(store_version(tier, content));
  }
  static std::vector<FoundVersion> scanned(const Tier& tier) {
    return test_support::value_of(tier.scan());
  }
  static FoundVersion only_version(const Tier& tier) {
    auto found = scanned(tier);
    EXPECT_EQ(found.size(), 1U);
    return found.empty() ? FoundVersion{} : std::move(found.front());
  }
  static sys::Directory directory_of(const Tier& tier, const format::VersionId& version) {
    return std::move(*tier.directory().open_child(store::version_directory(version)));
  }
  // Damages one byte in the middle.
  static void damage(const sys::Directory& directory, const std::string& name) {
    std::string text = *test_support::read_text(directory, name);
    text[text.size() / 2] ^= 1;
    ASSERT_TRUE(test_support::write_text(directory, name, text));
  }
  static struct stat status_of(const Slot& slot) {
    struct stat status {};
    EXPECT_EQ(slot.file().kernel().fstat(slot.file().fd(), &status), 0);
    return status;
  }

  World world_;
  const Content first_{version_of(1), 3 * kPageBytes, std::byte{0xab}};
};

// --- Space.

TEST_P(TierTest, GivesAtLeastWhatWasAskedAndTheSpaceIsThere) {
  Tier tier = opened();
  for (const std::uint64_t bytes : {std::uint64_t{1}, kPageBytes, kPageBytes + 1, 17 * kMiB + 1}) {
    const auto slot = tier.acquire(bytes, 0);
    ASSERT_TRUE(slot) << slot.error().message;
    EXPECT_GE(slot->capacity(), bytes);
    const struct stat status = status_of(*slot);
    EXPECT_GE(static_cast<std::uint64_t>(status.st_size), bytes);
    EXPECT_GE(static_cast<std::uint64_t>(status.st_blocks) * 512, bytes);
    EXPECT_EQ(status.st_mode & 0777, 0600U);
  }
}

TEST_P(TierTest, MapsTheWholeSlotInMemoryAndOnlyThere) {
  Tier tier = opened();
  auto slot = tier.acquire(10 * kPageBytes, 0);
  ASSERT_TRUE(slot);
  EXPECT_EQ(slot->mapping().size(), kind() == TierKind::memory ? slot->capacity() : 0);
  std::ranges::fill(slot->mapping(), std::byte{1});
}

TEST_P(TierTest, KeepsTheFilesOfRanksApart) {
  Tier one = opened();
  Tier other = opened();
  const auto a = one.acquire(kPageBytes, 0);
  const auto b = one.acquire(kPageBytes, 0);
  const auto c = other.acquire(kPageBytes, 1);
  ASSERT_TRUE(a && b && c);
  EXPECT_NE(status_of(*a).st_ino, status_of(*b).st_ino);
  EXPECT_NE(status_of(*a).st_ino, status_of(*c).st_ino);
}

TEST_P(TierTest, SaysWhichTierIsFullWhatWasNeededAndWhatIsFree) {
  Tier tier = opened();
  constexpr std::uint64_t kTooMuch = std::uint64_t{1} << 60;
  const auto slot = tier.acquire(kTooMuch, 0);
  EXPECT_EQ(code_of(slot), Code::full);
  EXPECT_THAT(message_of(slot),
              AllOf(HasSubstr(fmt::format("the {} tier {}", store::tier_name(kind()), tier.path())),
                    HasSubstr(fmt::format("{} bytes needed", kTooMuch)), HasSubstr(" free")));
  EXPECT_THAT(names_in(*tier.directory().open_child(store::kSpareDirectory)), IsEmpty());
  EXPECT_TRUE(store_version(tier, first_)) << "a tier that was full once must go on";
}

TEST_P(TierTest, SaysThatFilesMayNotBeThatLarge) {
  Tier tier = opened();
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit lower{64 * kMiB, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &lower), 0);
  const auto slot = tier.acquire(lower.rlim_cur + 1, 0);
  EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_EQ(code_of(slot), Code::io);
  EXPECT_THAT(message_of(slot), AllOf(HasSubstr(tier.path()), HasSubstr("ulimit -f")));
}

TEST_P(TierTest, UsesARecycledSlotAgainAndShowsNothingOfItsOldImage) {
  Tier tier = opened();
  Stored old = stored(tier, first_);
  const auto inode = status_of(old.slot).st_ino;
  ASSERT_TRUE(tier.unpublish(version_of(1)));
  tier.recycle(std::move(old.slot), version_of(1), store::image_name(0));
  EXPECT_THAT(names_in(directory_of(tier, version_of(1))), IsEmpty());

  const Content smaller(version_of(2), 100, std::byte{0x11});
  const Stored fresh = stored(tier, smaller);
  EXPECT_EQ(status_of(fresh.slot).st_ino, inode);
  ASSERT_TRUE(check_whole(tier, version_of(2)));
  auto reader = tier.open_image(version_of(2), store::image_name(0),
                                store::expected_image(fresh.manifest, 0));
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(reader->bytes().size(), smaller.image_bytes());
  ByteVector scratch(first_.image_bytes() + kPageBytes);
  const auto view = reader->bytes().view(0, scratch);
  ASSERT_TRUE(view);
  EXPECT_EQ(std::search_n(view->begin(), view->end(), 16, std::byte{0xab}), view->end());
  EXPECT_TRUE(std::ranges::all_of(view->subspan(smaller.image_bytes()),
                                  [](std::byte b) { return b == std::byte{0}; }));
}

TEST_P(TierTest, GivesACaptureTheNewestContentAndOthersForgetIt) {
  Tier tier = opened();
  auto first = tier.acquire(kPageBytes, 0, store::SlotUse::capture);
  auto second = tier.acquire(kPageBytes, 0, store::SlotUse::capture);
  first->set_content(7);
  second->set_content(8);
  tier.give_back(std::move(*second));
  tier.give_back(std::move(*first));
  auto newest = tier.acquire(kPageBytes, 0, store::SlotUse::capture);
  EXPECT_EQ(newest->content(), 8U);
  auto other = tier.acquire(kPageBytes, 0);
  EXPECT_EQ(other->content(), 0U);
  tier.give_back(std::move(*newest));
  tier.give_back(std::move(*other));
  EXPECT_EQ(tier.acquire(kPageBytes, 0)->content(), 0U);
  EXPECT_EQ(tier.acquire(kPageBytes, 0, store::SlotUse::capture)->content(), 8U);
}

TEST_P(TierTest, HandsALentSlotOutAgainOnlyWhenTheOtherHasPutItBack) {
  Tier owner = opened();
  Tier publisher = opened();
  store::Slot slot = *owner.acquire(kPageBytes, 0);
  const auto inode = status_of(slot).st_ino;
  const std::string name = slot.name();
  const sys::FileId id = slot.file().id();
  owner.lend(std::move(slot));
  store::Slot meanwhile = *owner.acquire(kPageBytes, 0);
  EXPECT_NE(status_of(meanwhile).st_ino, inode);
  auto borrowed = publisher.borrow(name, id);
  ASSERT_TRUE(borrowed) << borrowed.error().message;
  ASSERT_TRUE(publisher.make_version(version_of(1)));
  ASSERT_TRUE(publisher.settle(*borrowed, version_of(1), store::image_name(0)));
  publisher.recycle(std::move(*borrowed), version_of(1), store::image_name(0));
  EXPECT_EQ(status_of(*owner.acquire(kPageBytes, 0)).st_ino, inode);
}

TEST_P(TierTest, MakesANewFileWhereTheSpareIsTooSmall) {
  Tier tier = opened();
  auto small = tier.acquire(kPageBytes, 0);
  ASSERT_TRUE(small);
  tier.give_back(std::move(*small));
  const auto large = tier.acquire(3 * kMiB, 0);
  ASSERT_TRUE(large);
  EXPECT_GE(large->capacity(), 3 * kMiB);
}

// --- Publication.

TEST_P(TierTest, FindsAPublishedVersionWithItsManifestAndFiles) {
  Tier tier = opened();
  const Stored version = stored(tier, first_);
  const FoundVersion found = only_version(tier);
  EXPECT_EQ(found.id, version_of(1));
  EXPECT_EQ(found.manifest, version.manifest);
  EXPECT_THAT(found.images, ElementsAre(0U));
  EXPECT_THAT(found.parities, IsEmpty());
  EXPECT_THAT(found.damaged_manifests, IsEmpty());
  EXPECT_EQ(found.problem, "");
  const Status whole = check_whole(tier, version_of(1));
  EXPECT_TRUE(whole) << whole.error().message;
}

TEST_P(TierTest, ShowsNothingBeforeItIsPublished) {
  Tier tier = opened();
  EXPECT_THAT(scanned(tier), IsEmpty());
  auto slot = tier.acquire(first_.image_bytes(), 0);
  ASSERT_TRUE(slot);
  const auto manifest = write_image(*slot, first_);
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_THAT(scanned(tier), IsEmpty());
  ASSERT_TRUE(settle_image(tier, *slot, *manifest) && tier.sync_version(version_of(1)));
  const FoundVersion unfinished = only_version(tier);
  EXPECT_FALSE(unfinished.manifest);
  EXPECT_EQ(unfinished.problem, "") << "a checkpoint that did not come to its end is no damage";
  ASSERT_TRUE(tier.publish(*manifest));
  EXPECT_TRUE(only_version(tier).manifest);
}

TEST_P(TierTest, PublishesNothingInADirectoryThatWasMovedAway) {
  if (world_.disk() != nullptr) GTEST_SKIP() << "the disk in memory moves no directories";
  Tier tier = opened();
  auto slot = tier.acquire(first_.image_bytes(), 0);
  ASSERT_TRUE(slot);
  const auto manifest = write_image(*slot, first_);
  ASSERT_TRUE(manifest) << manifest.error().message;
  ASSERT_TRUE(settle_image(tier, *slot, *manifest) && tier.sync_version(version_of(1)));
  const std::string elsewhere = world_.root() + "-elsewhere";
  std::filesystem::rename(world_.root(), elsewhere);
  EXPECT_THAT(message_of(tier.publish(*manifest)), HasSubstr(tier.path() + " was moved away"));
  const Tier another = opened();
  EXPECT_THAT(message_of(tier.publish(*manifest)), HasSubstr("is another directory by now"));
  std::filesystem::remove_all(world_.root());
  std::filesystem::rename(elsewhere, world_.root());
  EXPECT_TRUE(tier.publish(*manifest)) << "it is back";
}

TEST_P(TierTest, PublishesNothingInAVersionWhoseDirectoryWasReplaced) {
  if (world_.disk() != nullptr) GTEST_SKIP() << "the disk in memory moves no directories";
  Tier tier = opened();
  auto slot = tier.acquire(first_.image_bytes(), 0);
  ASSERT_TRUE(slot);
  const auto manifest = write_image(*slot, first_);
  ASSERT_TRUE(manifest) << manifest.error().message;
  ASSERT_TRUE(settle_image(tier, *slot, *manifest) && tier.sync_version(version_of(1)));
  const std::string version = directory_of(tier, version_of(1)).path();
  const std::string elsewhere = world_.root() + "/elsewhere";
  std::filesystem::rename(version, elsewhere);
  EXPECT_EQ(code_of(tier.publish(*manifest)), Code::not_found);
  ASSERT_EQ(::mkdir(version.c_str(), 0700), 0);
  EXPECT_THAT(message_of(tier.publish(*manifest)), HasSubstr(version + " was moved away"));
  std::filesystem::remove(version);
  std::filesystem::rename(elsewhere, version);
  EXPECT_TRUE(tier.publish(*manifest)) << "it is back";
  EXPECT_TRUE(check_whole(tier, version_of(1)));
}

// No file there outlives the machine, and the death of a process loses nothing that was written.
TEST(TierInMemory, IsNotSynced) {
  for (const bool is_memory : {false, true}) {
    test_support::VolatileDisk disk;
    if (is_memory) disk.say_it_is_memory();
    test_support::FaultKernel kernel(disk);
    Tier tier = test_support::value_of(open_tier(kernel, TierKind::memory, "/tier"));
    const auto before = kernel.calls(test_support::Call::fsync);
    ASSERT_TRUE(store_version(tier, Content(version_of(1), 10, std::byte{1})));
    EXPECT_EQ(kernel.calls(test_support::Call::fsync) == before, is_memory);
    EXPECT_TRUE(check_whole(tier, version_of(1)));
  }
}

TEST_P(TierTest, ListsTheNewestVersionFirst) {
  Tier tier = opened();
  for (const std::uint64_t number : {9U, 100U, 10U})
    stored(tier, Content(version_of(number), 10, std::byte{1}));
  format::VersionId restarted = version_of(3);
  restarted.incarnation = 2;
  stored(tier, Content(restarted, 10, std::byte{1}));
  std::vector<std::uint64_t> numbers;
  for (const FoundVersion& found : scanned(tier)) numbers.push_back(found.id.number);
  EXPECT_THAT(numbers, ElementsAre(3U, 100U, 10U, 9U));
}

TEST_P(TierTest, HidesAnUnpublishedVersionAtOnce) {
  Tier tier = opened();
  const Stored version = stored(tier, first_);
  ASSERT_TRUE(tier.unpublish(version_of(1)));
  const FoundVersion hidden = only_version(tier);
  EXPECT_FALSE(hidden.manifest);
  EXPECT_EQ(hidden.problem, "");
  EXPECT_TRUE(tier.unpublish(version_of(1))) << "again";
  EXPECT_TRUE(tier.unpublish(version_of(77))) << "of one that never was";
}

TEST_P(TierTest, LeavesNoFileOfARemovedVersion) {
  Tier tier = opened();
  {
    const Stored one = stored(tier, first_);
    const Stored other = stored(tier, Content(version_of(2), 10, std::byte{1}));
  }
  ASSERT_TRUE(tier.remove_version(version_of(1)));
  EXPECT_THAT(names_in(tier.directory()),
              ElementsAre("spare", store::version_directory(version_of(2))));
  EXPECT_THAT(names_in(*tier.directory().open_child(store::kSpareDirectory)), IsEmpty());
  EXPECT_TRUE(check_whole(tier, version_of(2)));
  EXPECT_TRUE(tier.remove_version(version_of(1))) << "again";
}

TEST_P(TierTest, KeepsAVersionWhenItsProcessDies) {
  {
    Tier tier = opened();
    const Stored version = stored(tier, first_);
    ASSERT_TRUE(tier.acquire(kPageBytes, 0));
  }
  auto next = open(false);
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_TRUE(check_whole(*next, version_of(1)));
  ASSERT_TRUE(next->lock("next job", 0));
  ASSERT_TRUE(next->clear_spares());
  EXPECT_THAT(names_in(*next->directory().open_child(store::kSpareDirectory)), IsEmpty())
      << "left by the dead";
  EXPECT_TRUE(check_whole(*next, version_of(1)));
}

TEST_P(TierTest, IsNotThereBeforeItIsMade) { EXPECT_EQ(code_of(open(false)), Code::not_found); }

// --- Manifests.

TEST_P(TierTest, NeedsOneOfTheTwoManifestsOnly) {
  for (const char* damaged : store::kManifestNames) {
    Tier tier = opened();
    const Stored version = stored(tier, first_);
    damage(directory_of(tier, version_of(1)), damaged);
    const FoundVersion found = only_version(tier);
    EXPECT_EQ(found.manifest, version.manifest);
    ASSERT_EQ(found.damaged_manifests.size(), 1U);
    EXPECT_THAT(found.damaged_manifests[0].path, testing::EndsWith(damaged));
    EXPECT_THAT(found.problem, HasSubstr(damaged));
    EXPECT_TRUE(check_whole(tier, version_of(1)));
    ASSERT_TRUE(tier.remove_version(version_of(1)));
  }
}

TEST_P(TierTest, SaysWhichManifestIsMissing) {
  Tier tier = opened();
  const Stored version = stored(tier, first_);
  ASSERT_TRUE(tier.remove_file(version_of(1), "manifest.a"));
  const FoundVersion found = only_version(tier);
  EXPECT_EQ(found.manifest, version.manifest);
  EXPECT_THAT(found.problem, HasSubstr("manifest.a is missing"));
}

TEST_P(TierTest, TakesTheManifestOfAnotherJobForDamaged) {
  Tier tier = opened();
  const Stored version = stored(tier, first_);
  format::Manifest other = version.manifest;
  other.job = "jo";
  ASSERT_TRUE(tier.publish(other));
  const FoundVersion found = only_version(tier);
  EXPECT_FALSE(found.manifest);
  EXPECT_THAT(found.problem, HasSubstr("of another job, 'jo'"));
}

TEST_P(TierTest, SaysSoWhereBothManifestsAreDamaged) {
  Tier tier = opened();
  const Stored version = stored(tier, first_);
  for (const char* name : store::kManifestNames) damage(directory_of(tier, version_of(1)), name);
  const FoundVersion found = only_version(tier);
  EXPECT_FALSE(found.manifest);
  EXPECT_EQ(found.damaged_manifests.size(), 2U);
  EXPECT_NE(found.problem, "");
}

TEST_P(TierTest, DoesNotTakeTheManifestOfAnotherVersion) {
  Tier tier = opened();
  const Stored one = stored(tier, first_);
  const Stored other = stored(tier, Content(version_of(2), 10, std::byte{1}));
  const std::string foreign =
      *test_support::read_text(directory_of(tier, version_of(2)), "manifest.a");
  for (const char* name : store::kManifestNames) {
    ASSERT_TRUE(test_support::write_text(directory_of(tier, version_of(1)), name, foreign));
  }
  const FoundVersion found = scanned(tier).back();
  EXPECT_EQ(found.id, version_of(1));
  EXPECT_FALSE(found.manifest);
  EXPECT_THAT(found.problem, HasSubstr("another version"));
}

TEST_P(TierTest, FindsADamagedImageWhenItIsRead) {
  Tier tier = opened();
  const Stored version = stored(tier, first_);
  damage(directory_of(tier, version_of(1)), store::image_name(0));
  EXPECT_EQ(code_of(check_whole(tier, version_of(1))), Code::corrupt);
}

// --- Other people, other names.

TEST_P(TierTest, LetsOneHolderInAtATime) {
  Tier second = opened();
  {
    Tier first = opened();
    ASSERT_TRUE(first.lock("job 17 on node1", 0));
    const Status refused = second.lock("job 18", 0.05);
    EXPECT_EQ(code_of(refused), Code::busy);
    EXPECT_THAT(message_of(refused), AllOf(HasSubstr(first.path()), HasSubstr("job 17 on node1")));
  }
  EXPECT_TRUE(second.lock("job 18", 0));
}

TEST_P(TierTest, RefusesADirectoryThatOthersCanWriteTo) {
  world_.make_directory(world_.root(), 0777);
  EXPECT_EQ(code_of(open()), Code::denied);
  EXPECT_THAT(message_of(open()), AllOf(HasSubstr(world_.root()), HasSubstr("chmod")));
}

TEST_P(TierTest, RefusesAJobsDirectoryThatOthersCanWriteTo) {
  world_.make_directory(world_.root(), 0700);
  world_.make_directory(world_.root() + "/job-00000000", 0720);
  EXPECT_EQ(code_of(open()), Code::denied);
}

TEST_P(TierTest, RefusesADirectoryOfSomebodyElse) {
  if (world_.disk() == nullptr && ::geteuid() != 0)
    GTEST_SKIP() << "only root can give directories away";
  world_.make_directory(world_.root(), 0700);
  world_.give_to_somebody_else(world_.root());
  EXPECT_EQ(code_of(open()), Code::denied);
  EXPECT_THAT(message_of(open()), HasSubstr("belongs to user 4711"));
}

TEST_P(TierTest, IgnoresNamesThatItDidNotMake) {
  Tier tier = opened();
  const Stored version = stored(tier, first_);
  const std::string name = store::version_directory(version_of(1));
  for (const std::string& garbage :
       {"v0" + name.substr(1), name + ".tmp", "V" + name.substr(1), std::string("..."),
        std::string("v1"), std::string("v1-i1-"), std::string("..\\..")}) {
    ASSERT_TRUE(tier.directory().make_child(garbage)) << garbage;
  }
  for (const char* garbage :
       {"r00.img", "r1.img.tmp", "r-1.img", "g0-p.img", "manifest.c", "manifest.a.tmp"}) {
    ASSERT_TRUE(test_support::write_text(directory_of(tier, version_of(1)), garbage, "garbage"));
  }
  const FoundVersion found = only_version(tier);
  EXPECT_THAT(found.images, ElementsAre(0U));
  EXPECT_THAT(found.parities, IsEmpty());
  EXPECT_EQ(found.problem, "");
}

TEST_P(TierTest, SaysSoWhereAFileHasTheNameOfAVersion) {
  Tier tier = opened();
  ASSERT_TRUE(test_support::write_text(tier.directory(), store::version_directory(version_of(1)),
                                       "garbage"));
  const FoundVersion found = only_version(tier);
  EXPECT_FALSE(found.manifest);
  EXPECT_THAT(found.problem, HasSubstr(store::version_directory(version_of(1))));
}

TEST_P(TierTest, NeverLeavesItsDirectory) {
  Tier tier = opened();
  Stored version = stored(tier, first_);
  const std::string up = "../" + store::version_directory(version_of(1)) + "/r0.img";
  EXPECT_FALSE(tier.remove_file(version_of(1), up));
  EXPECT_FALSE(tier.remove_file(version_of(1), ".."));
  EXPECT_FALSE(tier.open_image(version_of(1), up, store::expected_image(version.manifest, 0)));
  auto slot = tier.acquire(kPageBytes, 0);
  ASSERT_TRUE(slot);
  EXPECT_FALSE(tier.settle(*slot, version_of(1), "../escaped"));
  EXPECT_TRUE(check_whole(tier, version_of(1)));
  for (const char* name : {"..", ".", "", "a/b", "/tmp", "../job"}) {
    EXPECT_FALSE(Tier::open(world_.kernel(), kind(), world_.root(), name, "", true)) << name;
  }
}

// The identity comes after all directories were synced: a job that has one starts without doing
// that again. So does a node whose directory was locked before.
TEST_P(TierTest, SyncsNoDirectoryOfAJobThatHasAnIdentity) {
  test_support::FaultKernel kernel(world_.kernel());
  const auto syncs_of_opening = [&] {
    const std::uint64_t before = kernel.calls(test_support::Call::fsync);
    EXPECT_TRUE(open_tier(kernel, kind(), world_.root(), true));
    return kernel.calls(test_support::Call::fsync) - before;
  };
  const std::uint64_t of_node = kind() == TierKind::global ? 0 : 1;
  syncs_of_opening();
  EXPECT_GT(syncs_of_opening(), of_node);
  const auto job = sys::Directory::open_private(kernel, world_.root() + "/job-00000000");
  ASSERT_TRUE(job);
  ASSERT_TRUE(store::write_identity(*job, {}, "0"));
  EXPECT_EQ(syncs_of_opening(), of_node);
  ASSERT_TRUE(opened().lock("process 1 on a machine\n", 0));
  EXPECT_EQ(syncs_of_opening(), 0u);
}

std::string name_of(const testing::TestParamInfo<std::tuple<TierKind, Ground>>& info) {
  const bool real = std::get<Ground>(info.param) == Ground::real;
  return std::string(store::tier_name(std::get<TierKind>(info.param))) +
         (real ? "_on_this_machine" : "_on_a_disk_in_memory");
}

INSTANTIATE_TEST_SUITE_P(, TierTest,
                         testing::Combine(testing::Values(TierKind::memory, TierKind::local,
                                                          TierKind::global),
                                          testing::Values(Ground::real, Ground::disk_in_memory)),
                         name_of);

// --- Cases that the machine's own file system shows only to its owner.

class SmallTier : public testing::TestWithParam<TierKind> {
 protected:
  test_support::VolatileDisk disk_;
};

TEST_P(SmallTier, CountsWhatIsFreeToTheByte) {
  auto tier = open_tier(disk_, GetParam(), "/tier");
  ASSERT_TRUE(tier);
  disk_.set_capacity(8 * kPageBytes);
  const auto held = tier->acquire(5 * kPageBytes, 0);
  ASSERT_TRUE(held) << held.error().message;
  const auto refused = tier->acquire(3 * kPageBytes + 1, 0);
  EXPECT_EQ(code_of(refused), Code::full);
  EXPECT_THAT(message_of(refused), HasSubstr("16384 bytes needed, 12288 free"));
  EXPECT_TRUE(tier->acquire(3 * kPageBytes, 0));
}

TEST_P(SmallTier, GivesUpSparesBeforeItIsFull) {
  auto tier = open_tier(disk_, GetParam(), "/tier");
  ASSERT_TRUE(tier);
  disk_.set_capacity(3 * kMiB);
  auto spare = tier->acquire(2 * kMiB, 0);
  ASSERT_TRUE(spare);
  tier->give_back(std::move(*spare));
  const auto slot = tier->acquire(3 * kMiB, 0);
  EXPECT_TRUE(slot) << slot.error().message;
}

// Somebody else has taken the space between the question and the reservation.
TEST_P(SmallTier, IsFullWhereTheReservationFailsAndLeavesNothingBehind) {
  test_support::FaultKernel kernel(
      disk_, {test_support::Fault::fail_once, 0, test_support::Call::fallocate, ENOSPC});
  auto tier = open_tier(kernel, GetParam(), "/tier");
  ASSERT_TRUE(tier);
  const auto slot = tier->acquire(kPageBytes, 0);
  EXPECT_EQ(code_of(slot), Code::full);
  EXPECT_THAT(message_of(slot), HasSubstr(store::tier_name(GetParam())));
  EXPECT_THAT(*tier->directory().open_child(store::kSpareDirectory)->list(), IsEmpty());
  EXPECT_TRUE(tier->acquire(kPageBytes, 0));
}

INSTANTIATE_TEST_SUITE_P(, SmallTier,
                         testing::Values(TierKind::memory, TierKind::local, TierKind::global),
                         name_of_kind);

}  // namespace
}  // namespace diapause::conformance
