// Tests what processes report about their versions.
#include "engine/job/inventory_reports.hpp"

#include <gmock/gmock.h>

namespace diapause::engine {
namespace {

store::FoundVersion found_version(std::uint32_t ranks, std::uint32_t levels) {
  store::FoundVersion found;
  found.id.number = 7;
  found.manifest.emplace();
  found.manifest->version = found.id;
  found.manifest->levels = levels;
  found.manifest->ranks.resize(ranks);
  found.images = {3};
  return found;
}

ByteVector report(const store::FoundVersion& found, std::uint32_t node) {
  format::Writer writer(256);
  write_mark(writer, {});
  describe(writer, found, config::TierKind::memory, node);
  return writer.take();
}

TEST(InventoryReports, HaveNoManifestsInThem) {
  EXPECT_EQ(report(found_version(4, 0b10), 0).size(),
            report(found_version(100'000, 0b10), 0).size());
}

TEST(InventoryReports, LetTheFirstProcessWithTheDeepestManifestSendIt) {
  const std::vector<ByteVector> all = {report(found_version(4, 0b10), 0),
                                       report(found_version(4, 0b110), 1),
                                       report(found_version(4, 0b110), 2)};
  const auto merged = merge_reports(all, 3);
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(merged->senders.begin()->second.process, 1U);
  const StoredVersion& version = merged->versions.begin()->second;
  EXPECT_THAT(version.published_on[0], testing::ElementsAre(0, 1, 2));
  EXPECT_EQ(version.nodes[2].images, std::set<std::uint32_t>{3});
}

TEST(InventoryReports, MustArriveWhole) {
  ByteVector cut = report(found_version(4, 0b10), 0);
  cut.resize(cut.size() - 3);
  EXPECT_EQ(merge_reports(std::vector<ByteVector>{cut}, 1).error().code, Code::comm);
}

}  // namespace
}  // namespace diapause::engine
