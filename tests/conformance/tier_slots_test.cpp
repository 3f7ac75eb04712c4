// A slot is one file, one mapping and one name, whatever becomes of the tier object that has made
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "conformance/tier_world.hpp"
#include "store/names.hpp"
#include "support/file_helpers.hpp"
#include "support/value_of.hpp"

namespace diapause::conformance {
namespace {

using config::TierKind;
using store::Slot;
using store::Tier;
using test_support::code_of;
using test_support::message_of;
using testing::HasSubstr;

class TierSlots : public testing::TestWithParam<Ground> {
 protected:
  Tier opened() {
    return test_support::value_of(open_tier(world_.kernel(), TierKind::memory, world_.root()));
  }
  static Slot acquired(Tier& tier) { return test_support::value_of(tier.acquire(kPageBytes, 0)); }
  static sys::Directory spare_of(const Tier& tier) {
    return *tier.directory().open_child(store::kSpareDirectory);
  }
  // While a file is open, the file system gives its inode to no other.
  static sys::File kept_open(const Tier& tier, const Slot& slot) {
    return test_support::value_of(spare_of(tier).open_file(slot.name(), sys::Access::read));
  }
  // Makes a version of a slot that was lent, as another process does.
  static Slot published(Tier& publisher, const std::string& name, const sys::FileId& id) {
    Slot slot = test_support::value_of(publisher.borrow(name, id));
    EXPECT_TRUE(publisher.make_version(version_of(1)));
    EXPECT_TRUE(publisher.settle(slot, version_of(1), store::image_name(0)));
    return slot;
  }

  World world_{GetParam()};
};

TEST_P(TierSlots, GiveNoNameTwiceThoughTheTierIsOpenedAnew) {
  Tier first = opened();
  const Slot slot = acquired(first);
  ASSERT_TRUE(spare_of(first).remove_file(slot.name()))
      << "settled and gone, as far as the directory tells";
  Tier second = opened();
  second.succeed(std::move(first));
  EXPECT_NE(acquired(second).name(), slot.name());
}

TEST_P(TierSlots, NeverTouchAFileThatIsThere) {
  Tier first = opened();
  const Slot slot = acquired(first);
  std::memset(slot.mapping().data(), 7, slot.mapping().size());
  Tier second = opened();  // knows nothing of the first one
  const Slot other = acquired(second);
  EXPECT_NE(other.name(), slot.name());
  EXPECT_NE(other.file().id(), slot.file().id());
  EXPECT_EQ(slot.mapping()[0], std::byte{7});
  EXPECT_EQ(*slot.file().size(), slot.capacity());
}

TEST_P(TierSlots, ThatWereLentComeBackToTheTierThatWasOpenedAnew) {
  Tier first = opened();
  Tier publisher = opened();
  Slot slot = acquired(first);
  const std::string name = slot.name();
  const sys::FileId id = slot.file().id();
  first.lend(std::move(slot));
  Tier second = opened();
  second.succeed(std::move(first));
  Slot version = published(publisher, name, id);
  EXPECT_NE(acquired(second).file().id(), id) << "it is published";
  publisher.recycle(std::move(version), version_of(1), store::image_name(0));
  EXPECT_EQ(acquired(second).file().id(), id);
}

TEST_P(TierSlots, ThatWereLentAreGivenUpWithTheirDirectory) {
  Tier first = opened();
  Slot slot = acquired(first);
  const sys::FileId id = slot.file().id();
  const sys::File held = kept_open(first, slot);
  first.lend(std::move(slot));
  ASSERT_TRUE(first.directory().remove_child(store::kSpareDirectory));
  Tier second = opened();
  second.succeed(std::move(first));
  EXPECT_NE(acquired(second).file().id(), id);
}

TEST_P(TierSlots, AreNotTakenBackWhereAnotherFileHasTheName) {
  Tier owner = opened();
  Slot slot = acquired(owner);
  const sys::FileId id = slot.file().id();
  const sys::File held = kept_open(owner, slot);
  const std::string returned = slot.name() + ".free";
  owner.lend(std::move(slot));
  ASSERT_TRUE(spare_of(owner).create_file(returned));
  EXPECT_NE(acquired(owner).file().id(), id);
}

TEST_P(TierSlots, AreNotAdoptedWhereAnotherFileHasTheName) {
  Tier owner = opened();
  Tier publisher = opened();
  Slot slot = acquired(owner);
  const Slot other = acquired(owner);
  const std::string name = slot.name();
  EXPECT_EQ(code_of(publisher.borrow(name, other.file().id())), Code::io);
  EXPECT_THAT(message_of(publisher.borrow(name, other.file().id())), HasSubstr(name));
}

TEST_P(TierSlots, AreProvenToBeWhatAVersionNames) {
  Tier tier = opened();
  Slot slot = acquired(tier);
  ASSERT_TRUE(tier.make_version(version_of(1)));
  ASSERT_TRUE(tier.settle(slot, version_of(1), store::image_name(0)));
  EXPECT_TRUE(tier.prove(slot, version_of(1), store::image_name(0)));
  const auto directory = tier.directory().open_child(store::version_directory(version_of(1)));
  ASSERT_TRUE(directory->remove_file(store::image_name(0)));
  EXPECT_EQ(code_of(tier.prove(slot, version_of(1), store::image_name(0))), Code::not_found);
  ASSERT_TRUE(directory->create_file(store::image_name(0)));
  const Status refused = tier.prove(slot, version_of(1), store::image_name(0));
  EXPECT_EQ(code_of(refused), Code::io);
  EXPECT_THAT(message_of(refused), HasSubstr("is not the file that was written"));
}

TEST_P(TierSlots, GoWithTheirFilesWhenTheyAreDiscarded) {
  Tier owner = opened();
  Tier publisher = opened();
  Slot slot = acquired(owner);
  const std::string name = slot.name();
  const sys::FileId id = slot.file().id();
  owner.lend(std::move(slot));
  publisher.discard(std::move(*publisher.borrow(name, id)));
  EXPECT_EQ(code_of(spare_of(owner).id_of(name)), Code::not_found);
  EXPECT_NE(acquired(owner).name(), name);
}

TEST_P(TierSlots, ThatSomethingElseHasCutAreNotUsedAgain) {
  Tier tier = opened();
  Slot slot = acquired(tier);
  const sys::FileId id = slot.file().id();
  ASSERT_TRUE(spare_of(tier).create_file(slot.name())) << "cuts it to nothing";
  const sys::File held = kept_open(tier, slot);
  tier.give_back(std::move(slot));
  const Slot other = acquired(tier);
  EXPECT_NE(other.file().id(), id);
  EXPECT_EQ(*other.file().size(), other.capacity());
}

TEST_P(TierSlots, AreReadyForTheNextCaptureAndNoMoreThanOne) {
  Tier tier = opened();
  const std::atomic<bool> stop = false;
  tier.keep_one_ready(kPageBytes, 0, 0, stop);
  const std::vector<sys::DirectoryEntry> made = test_support::value_of(spare_of(tier).list());
  ASSERT_EQ(made.size(), 1U);
  Slot first = acquired(tier);
  EXPECT_EQ(first.name(), made.front().name);
  Slot second = acquired(tier);
  first.set_content(7);
  const std::string newest = first.name();
  tier.give_back(std::move(first));
  tier.give_back(std::move(second));
  tier.keep_one_ready(kPageBytes, 0, 0, stop);
  const std::vector<sys::DirectoryEntry> kept = test_support::value_of(spare_of(tier).list());
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept.front().name, newest);
}

TEST_P(TierSlots, AreNotMadeInAdvanceWhereTheMachineNeedsItsMemory) {
  Tier tier = opened();
  tier.keep_one_ready(kPageBytes, 0, UINT64_MAX, false);
  EXPECT_TRUE(test_support::value_of(spare_of(tier).list()).empty());
}

TEST_P(TierSlots, ThatAreNotReadyInTimeAreMadeSoByWhoeverNeedsThem) {
  Tier tier = opened();
  tier.keep_one_ready(kPageBytes, 0, 0, true);  // it was stopped before it began
  const std::vector<sys::DirectoryEntry> made = test_support::value_of(spare_of(tier).list());
  ASSERT_EQ(made.size(), 1U);
  const Slot slot = acquired(tier);
  EXPECT_EQ(slot.name(), made.front().name);
  EXPECT_EQ(slot.mapping().size(), kPageBytes);
  EXPECT_EQ(test_support::value_of(slot.file().size()), kPageBytes);
}

TEST_P(TierSlots, OfLaterUseGetTheirMemoryWhenTheyAreFilled) {
  Tier tier = opened();
  Slot slot = test_support::value_of(tier.acquire(kPageBytes, 0, store::SlotUse::later));
  EXPECT_EQ(test_support::value_of(slot.file().size()), kPageBytes) << "it counts from here on";
  EXPECT_TRUE(slot.mapping().empty());
  ASSERT_TRUE(slot.prepare());
  EXPECT_EQ(slot.mapping().size(), kPageBytes);
  EXPECT_EQ(test_support::value_of(slot.file().size()), kPageBytes);
}

INSTANTIATE_TEST_SUITE_P(, TierSlots, testing::Values(Ground::real, Ground::disk_in_memory),
                         [](const auto& test) {
                           return test.param == Ground::real ? "Real" : "DiskInMemory";
                         });

}  // namespace
}  // namespace diapause::conformance
