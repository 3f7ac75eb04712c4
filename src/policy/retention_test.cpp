#include "policy/retention.hpp"

#include <gmock/gmock.h>

namespace diapause::policy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint32_t kL1 = 1U << 1, kL2 = 1U << 2, kL3 = 1U << 3, kL4 = 1U << 4;

config::Settings keeping(std::uint32_t l1, std::uint32_t l2, std::uint32_t l3, std::uint32_t l4) {
  config::Settings settings;
  settings.level(1).keep = l1;
  settings.level(2).keep = l2;
  settings.level(3).keep = l3;
  settings.level(4).keep = l4;
  return settings;
}

std::vector<std::uint32_t> kept(const std::vector<RetentionCandidate>& newest_first,
                                const config::Settings& settings) {
  return kept_levels(newest_first, settings);
}

TEST(Retention, KeepsTheNewestVersionsOfEachLevel) {
  EXPECT_THAT(kept({{kL1}, {kL1}, {kL1}}, keeping(2, 2, 2, 2)), ElementsAre(kL1, kL1, 0));
  EXPECT_THAT(kept({}, keeping(2, 2, 2, 2)), IsEmpty());
}

TEST(Retention, CountsADeeperVersionForTheLevelsBelowItToo) {
  const auto masks = kept({{kL1 | kL4}, {kL1}, {kL1 | kL2}, {kL1}}, keeping(2, 1, 1, 1));
  EXPECT_THAT(masks, ElementsAre(kL1 | kL2 | kL3 | kL4, kL1, 0, 0));
}

TEST(Retention, KeepsAnOldDeepVersionUntilADeeperOrEqualOneFollows) {
  EXPECT_THAT(kept({{kL1}, {kL1}, {kL1 | kL4}}, keeping(1, 1, 1, 1)),
              ElementsAre(kL1, 0, kL2 | kL3 | kL4));
  EXPECT_THAT(kept({{kL1 | kL4}, {kL1}, {kL1 | kL4}}, keeping(1, 1, 1, 1)),
              ElementsAre(kL1 | kL2 | kL3 | kL4, 0, 0));
}

TEST(Retention, LetsEachLevelKeepItsOwnNumber) {
  const auto masks = kept({{kL1 | kL4}, {kL1 | kL4}, {kL1 | kL4}}, keeping(1, 1, 2, 3));
  EXPECT_THAT(masks, ElementsAre(kL1 | kL2 | kL3 | kL4, kL3 | kL4, kL4));
}

TEST(Retention, DropsVersionsThatReachedNoLevel) {
  EXPECT_THAT(kept({{0}, {1}, {1U << 7}, {kL1}}, keeping(1, 1, 1, 1)), ElementsAre(0, 0, 0, kL1));
}

TEST(Retention, KeepsTheNewestExactVersionBesidesThoseThatAreNot) {
  const RetentionCandidate lossy{kL1 | kL4, false}, exact{kL1 | kL4, true};
  const auto masks = kept({lossy, lossy, lossy, exact, exact}, keeping(1, 1, 1, 2));
  EXPECT_THAT(masks, ElementsAre(kL1 | kL2 | kL3 | kL4, kL4, 0, kL4, 0));
}

}  // namespace
}  // namespace diapause::policy
