// A version and the death of whoever writes it: of the process, and of the machine.
#include <gtest/gtest.h>

#include <vector>

#include "conformance/tier_world.hpp"
#include "support/fault_kernel.hpp"

namespace diapause::conformance {
namespace {

using config::TierKind;
using test_support::Fault;
using test_support::FaultKernel;
using test_support::PowerLoss;
using test_support::VolatileDisk;

struct Outage {
  PowerLoss mode;
  std::uint64_t seed;
};

std::vector<Outage> outages() {
  std::vector<Outage> all = {{PowerLoss::lose_all, 0},
                             {PowerLoss::keep_names_lose_data, 0},
                             {PowerLoss::keep_data_lose_names, 0}};
  for (std::uint64_t seed = 0; seed < 6; ++seed) all.push_back({PowerLoss::random, seed});
  return all;
}

const Content kFirst(version_of(1), 3 * kPageBytes, std::byte{0x11});
const Content kSecond(version_of(2), 2 * kPageBytes + 5, std::byte{0x22});

// What is left of `content`: nothing, all of it, or ruins.
enum class Left { nothing, all, ruins };

Left left_of(const store::Tier& tier, const Content& content) {
  const Status whole = check_whole(tier, content.identity.version);
  if (whole) return Left::all;
  return whole.error().code == Code::not_found ? Left::nothing : Left::ruins;
}

class TierPowerLoss : public testing::TestWithParam<TierKind> {};

TEST_P(TierPowerLoss, LeavesAPublishedVersionWhole) {
  for (const Outage& outage : outages()) {
    VolatileDisk disk;
    {
      auto tier = open_tier(disk, GetParam(), "/tier");
      ASSERT_TRUE(tier && store_version(*tier, kFirst));
    }
    disk.power_loss(outage.mode, outage.seed);
    const auto tier = open_tier(disk, GetParam(), "/tier", false);
    ASSERT_TRUE(tier) << tier.error().message;
    EXPECT_EQ(left_of(*tier, kFirst), Left::all)
        << static_cast<int>(outage.mode) << " seed " << outage.seed;
  }
}

// `act` is a step in the life of version 2, with version 1 published before it; the process dies at
// every call of it. Counts outcomes that break a promise: version 1 not whole, or version 2 in
// ruins, or not `promised` after success.
template <class Act>
unsigned broken_promises(TierKind kind, bool has_second, Left promised, Act act) {
  unsigned broken = 0;
  for (const Outage& outage : outages()) {
    bool reached = true;
    for (std::uint64_t index = 0; reached; ++index) {
      VolatileDisk disk;
      {
        auto tier = open_tier(disk, kind, "/tier");
        EXPECT_TRUE(tier && store_version(*tier, kFirst) &&
                    (!has_second || store_version(*tier, kSecond)));
      }
      FaultKernel dying(disk, {Fault::stop, index});
      auto tier = open_tier(dying, kind, "/tier", false);
      const bool done = tier && act(*tier);
      disk.power_loss(outage.mode, outage.seed);
      const auto after = open_tier(disk, kind, "/tier", false);
      const Left second = left_of(*after, kSecond);
      broken += left_of(*after, kFirst) != Left::all || second == Left::ruins ||
                (done && second != promised);
      reached = dying.reached();
    }
  }
  return broken;
}

TEST_P(TierPowerLoss, LeavesAVersionAbsentOrWholeAtEveryCallOfItsMaking) {
  EXPECT_EQ(
      broken_promises(GetParam(), false, Left::all,
                      [](store::Tier& tier) { return store_version(tier, kSecond).has_value(); }),
      0U);
}

TEST_P(TierPowerLoss, LeavesAVersionAbsentOrWholeAtEveryCallOfItsRemoval) {
  EXPECT_EQ(broken_promises(
                GetParam(), true, Left::nothing,
                [](store::Tier& tier) { return tier.remove_version(version_of(2)).has_value(); }),
            0U);
}

// Without this the two above would prove nothing.
TEST_P(TierPowerLoss, FindsOutAWriterThatPublishesBeforeItSettles) {
  EXPECT_GT(broken_promises(GetParam(), false, Left::all,
                            [](store::Tier& tier) {
                              auto slot = tier.acquire(kSecond.image_bytes(), 0);
                              if (!slot) return false;
                              const auto manifest = write_image(*slot, kSecond);
                              return manifest && tier.make_version(version_of(2)) &&
                                     tier.publish(*manifest) &&
                                     settle_image(tier, *slot, *manifest) &&
                                     tier.sync_version(version_of(2));
                            }),
            0U);
}

INSTANTIATE_TEST_SUITE_P(, TierPowerLoss, testing::Values(TierKind::local, TierKind::global),
                         name_of_kind);

}  // namespace
}  // namespace diapause::conformance
