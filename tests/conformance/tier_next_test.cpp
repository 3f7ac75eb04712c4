// Tests that a memory tier uses the directory of a removed version again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/tier_world.hpp"
#include "store/names.hpp"
#include "store/orphaned_images.hpp"
#include "support/file_helpers.hpp"
#include "support/value_of.hpp"

namespace diapause::conformance {
namespace {

using config::TierKind;
using store::Tier;
using test_support::code_of;
using testing::Contains;
using testing::ElementsAre;
using testing::Not;

class NextDirectory : public testing::Test {
 protected:
  NextDirectory() { disk_.say_it_is_memory(); }

  Tier opened(TierKind kind = TierKind::memory) {
    return test_support::value_of(open_tier(disk_, kind, "/tier"));
  }

  static Content content(std::uint64_t number) {
    return {version_of(number), 3 * kPageBytes, std::byte(number)};
  }
  static Stored stored(Tier& tier, std::uint64_t number) {
    return test_support::value_of(store_version(tier, content(number)));
  }

  // Puts a version together as far as its image.
  static format::Manifest begun(Tier& tier, std::uint64_t number) {
    auto slot = test_support::value_of(tier.acquire(content(number).image_bytes(), 0));
    auto manifest = test_support::value_of(write_image(slot, content(number)));
    EXPECT_TRUE(settle_image(tier, slot, manifest));
    return manifest;
  }

  // What a rank does that acts for its node and is alone. Returns whether the directory is kept.
  static bool remove(Tier& tier, Stored version) {
    const format::VersionId id = version.manifest.version;
    EXPECT_TRUE(tier.unpublish(id));
    const bool is_out = tier.recycle(std::move(version.slot), id, store::image_name(0));
    if (is_out && tier.can_keep_directory(id)) {
      tier.keep_directory();
      return true;
    }
    EXPECT_TRUE(tier.remove_unpublished(id));
    return false;
  }

  static sys::FileId id_of(const Tier& tier, std::uint64_t number) {
    return test_support::value_of(
        tier.directory().id_of(store::version_directory(version_of(number))));
  }
  static std::vector<std::uint64_t> published(const Tier& tier) {
    std::vector<std::uint64_t> numbers;
    for (const store::FoundVersion& found : test_support::value_of(tier.scan())) {
      EXPECT_EQ(found.problem, "");
      if (found.manifest) numbers.push_back(found.id.number);
    }
    return numbers;
  }

  test_support::VolatileDisk disk_;
};

TEST_F(NextDirectory, BecomesThatOfTheVersionAfter) {
  Tier tier = opened();
  Stored first = stored(tier, 1);
  const sys::FileId directory = id_of(tier, 1);
  Stored second = stored(tier, 2);
  EXPECT_TRUE(remove(tier, std::move(first)));
  EXPECT_THAT(published(tier), ElementsAre(2U));
  const Stored third = stored(tier, 3);
  EXPECT_EQ(id_of(tier, 3), directory);
  EXPECT_THAT(published(tier), ElementsAre(3U, 2U));
  for (const std::uint64_t number : {2, 3}) {
    const Status whole = check_whole(tier, version_of(number));
    EXPECT_TRUE(whole) << whole.error().message;
  }
  EXPECT_TRUE(remove(tier, std::move(second)));
  const Stored fourth = stored(tier, 4);
  EXPECT_THAT(names_in(tier.directory()),
              ElementsAre("spare", store::version_directory(version_of(3)),
                          store::version_directory(version_of(4))));
  EXPECT_THAT(names_in(*tier.directory().open_child(store::version_directory(version_of(4)))),
              ElementsAre("manifest.a", "manifest.b", "r0.img"));
}

TEST_F(NextDirectory, TakesAManifestThatIsShorterThanTheOneBefore) {
  Tier tier = opened();
  Stored first = stored(tier, 1);
  first.manifest.node_names = {std::string(2000, 'n')};
  ASSERT_TRUE(tier.publish(first.manifest));
  Stored second = stored(tier, 2);
  ASSERT_TRUE(remove(tier, std::move(first)));
  (void)stored(tier, 3);
  EXPECT_THAT(published(tier), ElementsAre(3U, 2U));
}

TEST_F(NextDirectory, IsNoVersionBeforeItIsPublished) {
  Tier tier = opened();
  Stored first = stored(tier, 1);
  const Stored second = stored(tier, 2);
  ASSERT_TRUE(remove(tier, std::move(first)));
  const format::Manifest third = begun(tier, 3);
  EXPECT_THAT(published(tier), ElementsAre(2U));
  const auto orphans = test_support::value_of(store::find_orphaned_images(tier.directory()));
  ASSERT_EQ(orphans.size(), 1U);
  EXPECT_EQ(orphans[0].header.version, version_of(3));
  ASSERT_TRUE(store::settle_orphaned_image(tier.directory(), orphans[0]));
  Tier another = opened();
  ASSERT_TRUE(another.publish(third));
  ASSERT_TRUE(another.clear_spares());
  EXPECT_THAT(published(another), ElementsAre(3U, 2U));
  EXPECT_TRUE(check_whole(another, version_of(3)));
  EXPECT_THAT(names_in(another.directory()), Not(Contains("next")));
}

TEST_F(NextDirectory, GetsAManifestThatSomebodyHasRemovedOrReplaced) {
  Tier tier = opened();
  Stored first = stored(tier, 1);
  Stored second = stored(tier, 2);
  ASSERT_TRUE(remove(tier, std::move(first)));
  Stored third = stored(tier, 3);
  ASSERT_TRUE(remove(tier, std::move(second)));
  (void)stored(tier, 4);
  ASSERT_TRUE(remove(tier, std::move(third)));  // its directory has had two versions
  const format::Manifest fifth = begun(tier, 5);
  const sys::Directory next = test_support::value_of(tier.directory().open_child("next"));
  ASSERT_TRUE(next.remove_file("manifest.b"));
  ASSERT_TRUE(next.remove_file("manifest.a"));
  ASSERT_TRUE(next.create_file("manifest.a"));
  ASSERT_TRUE(tier.publish(fifth));
  EXPECT_THAT(published(tier), ElementsAre(5U, 4U));  // without a problem
}

TEST_F(NextDirectory, OfAVersionThatIsGivenUpGoes) {
  Tier tier = opened();
  Stored first = stored(tier, 1);
  (void)stored(tier, 2);
  ASSERT_TRUE(remove(tier, std::move(first)));
  (void)begun(tier, 3);
  ASSERT_TRUE(tier.remove_version(version_of(3)));
  EXPECT_THAT(names_in(tier.directory()), Not(Contains("next")));
  (void)stored(tier, 4);
  EXPECT_THAT(published(tier), ElementsAre(4U, 2U));
}

// It may be published again at a deeper level, or at a lower one.
TEST_F(NextDirectory, IsUsedAgainWhateverWasPublishedInIt) {
  Tier tier = opened();
  Stored before = stored(tier, 1);
  for (std::uint64_t number = 2; number <= 9; ++number) {
    Stored version = stored(tier, number);
    ASSERT_TRUE(number % 3 != 0 || tier.publish(version.manifest));
    ASSERT_TRUE(number % 4 != 0 || tier.publish(before.manifest));
    ASSERT_TRUE(remove(tier, std::move(before)));
    EXPECT_THAT(published(tier), ElementsAre(number));
    before = std::move(version);
  }
}

TEST_F(NextDirectory, OfAnotherObjectGoes) {
  Tier tier = opened();
  ASSERT_TRUE(tier.directory().make_child("next")->create_file("r0.img"));
  Stored first = stored(tier, 1);
  Stored second = stored(tier, 2);
  EXPECT_FALSE(remove(tier, std::move(first)));
  EXPECT_THAT(published(tier), ElementsAre(2U));
  EXPECT_THAT(names_in(tier.directory()), Not(Contains("next")));
  (void)stored(tier, 3);
  EXPECT_TRUE(remove(tier, std::move(second)));
}

// Files of other processes may lie there.
TEST_F(NextDirectory, IsNotOneInWhichAVersionWasFound) {
  (void)stored(*std::make_unique<Tier>(opened()), 1);
  Tier tier = opened();
  ASSERT_TRUE(tier.make_version(version_of(1)));
  (void)stored(tier, 2);
  ASSERT_TRUE(tier.unpublish(version_of(1)));
  EXPECT_FALSE(tier.can_keep_directory(version_of(1)));
  ASSERT_TRUE(tier.remove_unpublished(version_of(1)));
  EXPECT_THAT(published(tier), ElementsAre(2U));
}

// Whoever has moved a version away wants to keep it.
TEST_F(NextDirectory, IsNotOneThatWasMovedAway) {
  Tier tier = opened();
  Stored first = stored(tier, 1);
  (void)stored(tier, 2);
  ASSERT_TRUE(tier.directory().rename(store::version_directory(version_of(1)), tier.directory(),
                                      "rescued"));
  EXPECT_FALSE(remove(tier, std::move(first)));
  EXPECT_THAT(names_in(*tier.directory().open_child("rescued")),
              ElementsAre("manifest.a", "manifest.b", "r0.img"));
}

TEST(NextDirectoryOnADisk, IsNotKept) {
  for (const TierKind kind : {TierKind::memory, TierKind::local}) {
    test_support::VolatileDisk disk;  // it says that it is none in memory
    Tier tier = test_support::value_of(open_tier(disk, kind, "/tier"));
    const Content first(version_of(1), kPageBytes, std::byte{1});
    const Content second(version_of(2), kPageBytes, std::byte{2});
    ASSERT_TRUE(store_version(tier, first));
    ASSERT_TRUE(store_version(tier, second));
    ASSERT_TRUE(tier.unpublish(version_of(1)));
    EXPECT_FALSE(tier.can_keep_directory(version_of(1)));
    EXPECT_EQ(code_of(tier.directory().open_child("next")), Code::not_found);
  }
}

}  // namespace
}  // namespace diapause::conformance
