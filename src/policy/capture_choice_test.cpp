#include "policy/capture_choice.hpp"

#include <gmock/gmock.h>

namespace diapause::policy {
namespace {

using config::CaptureStrategy;
using testing::HasSubstr;

RegionFacts a_gigabyte(std::optional<double> changed) {
  RegionFacts region;
  region.bytes = std::uint64_t{1} << 30;
  region.changed = changed;
  return region;
}

// Returns costs as measured on one machine: a copy of 1 GiB takes 0.1 s.
CaptureCosts measured() {
  CaptureCosts costs;
  costs.copy_s_per_byte = 1e-10;
  costs.arm_s_per_byte = 2e-11;
  costs.drain_s_per_byte = 2e-10;
  costs.scan_s_per_byte = 2e-12;
  costs.fault_s = 60e-6;
  costs.fault_bytes = std::uint64_t{256} << 10;
  return costs;
}

CaptureMethod chosen(const RegionFacts& region, const CaptureCosts& costs) {
  return choose_capture(CaptureStrategy::automatic, region, costs).method;
}

TEST(CaptureChoice, CopiesAsLongAsNothingIsKnown) {
  EXPECT_EQ(chosen(a_gigabyte({}), measured()), CaptureMethod::copy);
  EXPECT_EQ(chosen(a_gigabyte(0.1), {}), CaptureMethod::copy);
}

TEST(CaptureChoice, CopiesWhatIsSmall) {
  RegionFacts region = a_gigabyte(0.0);
  region.bytes = 100'000;
  EXPECT_EQ(chosen(region, measured()), CaptureMethod::copy);
}

TEST(CaptureChoice, TakesOnlyTheChangesWhereLittleChanges) {
  EXPECT_EQ(chosen(a_gigabyte(0.01), measured()), CaptureMethod::incremental);
}

TEST(CaptureChoice, ProtectsWhereTrackingCostsMoreThanAFewStoppedWrites) {
  EXPECT_EQ(chosen(a_gigabyte(0.2), measured()), CaptureMethod::copy_on_write);
}

TEST(CaptureChoice, CopiesWhereEverythingChanges) {
  EXPECT_EQ(chosen(a_gigabyte(1.0), measured()), CaptureMethod::copy);
}

TEST(CaptureChoice, CountsTheBackgroundCopyWhereItTakesTheProgramsCore) {
  CaptureCosts costs = measured();
  costs.core_to_spare = false;
  EXPECT_EQ(chosen(a_gigabyte(0.2), costs), CaptureMethod::copy);
}

TEST(CaptureChoice, NeverTakesWhatIsRefused) {
  RegionFacts region = a_gigabyte(0.01);
  region.tracking_refusal = "written by devices";
  EXPECT_EQ(chosen(region, measured()), CaptureMethod::copy_on_write);
  region.copy_on_write_refusal = "written by devices";
  EXPECT_EQ(chosen(region, measured()), CaptureMethod::copy);
}

TEST(CaptureChoice, StaysWithWhatItHasUntilAnotherIsClearlyCheaper) {
  RegionFacts region = a_gigabyte(0.29);
  EXPECT_EQ(chosen(region, measured()), CaptureMethod::copy);
  region.present = CaptureMethod::copy_on_write;
  EXPECT_EQ(chosen(region, measured()), CaptureMethod::copy_on_write);
}

TEST(CaptureChoice, SaysWhatEachMethodWouldCost) {
  EXPECT_EQ(choose_capture(CaptureStrategy::automatic, a_gigabyte(0.01), measured()).reason,
            "1 % changed; expected copy 107.4 ms, copy-on-write 23.9 ms, incremental 7.4 ms");
}

TEST(CaptureChoice, ObeysTheConfigurationWhereItCan) {
  RegionFacts region = a_gigabyte({});
  EXPECT_EQ(choose_capture(CaptureStrategy::copy_on_write, region, {}).method,
            CaptureMethod::copy_on_write);
  EXPECT_EQ(choose_capture(CaptureStrategy::incremental, region, {}).method,
            CaptureMethod::incremental);
  EXPECT_EQ(choose_capture(CaptureStrategy::copy, a_gigabyte(0.0), measured()).method,
            CaptureMethod::copy);
}

TEST(CaptureChoice, SaysWhyItDoesNotObey) {
  RegionFacts region = a_gigabyte({});
  region.copy_on_write_refusal = "it is mapped from a file";
  const CaptureChoice choice = choose_capture(CaptureStrategy::copy_on_write, region, {});
  EXPECT_EQ(choice.method, CaptureMethod::copy);
  EXPECT_THAT(choice.reason, HasSubstr("it is mapped from a file"));
}

TEST(CaptureChoice, ComparesChecksumsWhereChangesAreAskedForAndNotTracked) {
  RegionFacts region = a_gigabyte({});
  region.tracking_refusal = "written by devices";
  const CaptureChoice choice = choose_capture(CaptureStrategy::incremental, region, {});
  EXPECT_EQ(choice.method, CaptureMethod::incremental);
  EXPECT_THAT(choice.reason, HasSubstr("by checksum: written by devices"));
}

}  // namespace
}  // namespace diapause::policy
