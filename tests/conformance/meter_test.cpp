// Tests what every meter must do, whatever it reads. Each law is stated once and run on the world
// of each meter.
#include <gmock/gmock.h>

#include <cerrno>
#include <set>

#include "conformance/meter_world.hpp"
#include "energy/collector.hpp"

namespace diapause::energy {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr double kPeriodS = 0.1;

class Meters : public testing::TestWithParam<WorldEntry> {
 protected:
  void open() {
    Discovery discovery = world_->discover();
    ASSERT_NE(discovery.meter, nullptr);
    std::vector<std::unique_ptr<Meter>> meters;
    meters.push_back(std::move(discovery.meter));
    collector_.emplace(std::move(meters), kPeriodS);
    run(6);
    collector_->decide(Collector::Models::always);
    ASSERT_GE(collector_->zones().size(), world_->parts());
  }
  void run(double seconds, double step_s = kPeriodS) {
    for (double end_s = world_->now_s() + seconds; world_->now_s() < end_s - step_s / 2;) {
      world_->advance(step_s);
      collector_->collect(world_->now_s());
    }
  }
  Amount since(double from_s, std::size_t part) {
    return collector_->between(part, from_s, world_->now_s());
  }
  // Rounding in the source may change the joules by so much.
  double tolerance_j(std::size_t part) {
    const Zone& zone = collector_->zones()[part];
    return 2 * zone.resolution_j + 1.1 * world_->watts(part) * std::max(zone.update_s, kPeriodS);
  }

  std::unique_ptr<MeterWorld> world_ = GetParam().make();
  std::optional<Collector> collector_;
};

class CountersThatGoRound : public Meters {};
class MetersThatShowZeros : public Meters {};
class CountersThatAreSetAnew : public Meters {};
class MetersThatFallSilent : public Meters {};  // a model does not

TEST_P(Meters, SayWhereANumberIsFromAndWhatItIsWorth) {
  open();
  std::set<std::pair<Domain, std::string>> known;
  for (const Zone& zone : collector_->zones()) {
    EXPECT_THAT(zone.source, HasSubstr(world_->meter() + " ")) << zone.source;
    EXPECT_GT(zone.resolution_j, 0) << zone.source;
    EXPECT_GT(zone.update_s, 0) << zone.source;
    EXPECT_TRUE(known.insert({zone.domain, zone.part}).second) << zone.source << " is there twice";
    EXPECT_EQ(zone.kind == Kind::modelled, world_->name() == "model") << zone.source;
  }
}

TEST_P(Meters, CountTheEnergyThatIsUsed) {
  open();
  const double from_s = world_->now_s();
  run(60);
  for (std::size_t i = 0; i < world_->parts(); ++i) {
    EXPECT_NEAR(since(from_s, i).joules, 60 * world_->watts(i), tolerance_j(i)) << i;
    EXPECT_FALSE(since(from_s, i).has_gap()) << i;
  }
}

TEST_P(MetersThatFallSilent, FollowPowerThatChanges) {
  open();
  const double from_s = world_->now_s();
  double expected_j = 0;
  for (const double watts : {50.0, 400.0, 90.0, 200.0}) {
    world_->set_watts(0, watts);
    run(10);
    expected_j += 10 * watts;
  }
  world_->set_watts(0, 400);  // the tolerance needs the steepest step
  EXPECT_NEAR(since(from_s, 0).joules, expected_j, 4 * tolerance_j(0));
}

TEST_P(CountersThatGoRound, LoseNothingHoweverOftenTheyDo) {
  open();
  const double from_s = world_->now_s();
  world_->set_watts(0, 400);
  const double seconds = 5 * world_->range_j() / 400;
  run(seconds, 60);
  EXPECT_NEAR(since(from_s, 0).joules, 400 * (world_->now_s() - from_s), tolerance_j(0));
  EXPECT_FALSE(since(from_s, 0).has_gap());
}

TEST_P(MetersThatShowZeros, TakeASingleOneForNoReading) {
  open();
  const double from_s = world_->now_s();
  run(5);
  world_->show_zero(0);
  collector_->collect(world_->now_s() + kPeriodS / 2);
  run(5);
  EXPECT_NEAR(since(from_s, 0).joules, 10 * world_->watts(0), tolerance_j(0));
  EXPECT_FALSE(since(from_s, 0).has_gap());
}

TEST_P(MetersThatFallSilent, ReportAGap) {
  open();
  const double from_s = world_->now_s();
  world_->silence(0, true);
  run(30);
  EXPECT_GT(since(from_s, 0).gap_s, 20);
  EXPECT_LT(since(from_s, 0).joules, 6 * world_->watts(0));
  world_->silence(0, false);
  run(10);
  const double later_s = world_->now_s();
  run(10);
  EXPECT_NEAR(since(later_s, 0).joules, 10 * world_->watts(0), tolerance_j(0));
}

TEST_P(MetersThatFallSilent, AreNotTakenForLive) {
  Discovery discovery;
  for (std::size_t i = 0; i < world_->parts(); ++i) world_->silence(i, true);
  discovery = world_->discover();
  ASSERT_NE(discovery.meter, nullptr);
  std::vector<std::unique_ptr<Meter>> meters;
  meters.push_back(std::move(discovery.meter));
  collector_.emplace(std::move(meters), kPeriodS);
  run(3);
  collector_->decide(Collector::Models::always);
  EXPECT_THAT(collector_->zones(), IsEmpty());
  ASSERT_EQ(collector_->dropped().size(), world_->parts());
  EXPECT_THAT(collector_->dropped()[0].why, Not(IsEmpty()));
}

TEST_P(Meters, KeepTheEnergyOfAllOthersWhenOneFails) {
  for (const int error : {EACCES, ENODATA, EIO}) {
    collector_.reset();
    world_ = GetParam().make();
    open();
    const double from_s = world_->now_s();
    ASSERT_TRUE(world_->fail(0, error));
    run(5);
    EXPECT_THAT(collector_->failure(0), Not(IsEmpty()));
    ASSERT_TRUE(world_->fail(0, 0));
    run(15);
    const Amount failed = since(from_s, 0);
    EXPECT_LT(failed.joules, 20 * world_->watts(0) + tolerance_j(0));
    EXPECT_NEAR(failed.joules, failed.covered_s * world_->watts(0), 2 * tolerance_j(0));
    EXPECT_THAT(collector_->failure(0), IsEmpty());
    const bool is_one_source = collector_->failure(world_->parts() - 1) == collector_->failure(0) &&
                               (world_->name() == "stream" || world_->name() == "replay");
    for (std::size_t i = 1; i < world_->parts() && !is_one_source; ++i) {
      EXPECT_NEAR(since(from_s, i).joules, 20 * world_->watts(i), tolerance_j(i));
    }
  }
}

TEST_P(CountersThatAreSetAnew, HaveAGapThereAndNoEnergy) {
  open();
  run(100);
  const double from_s = world_->now_s();
  world_->set_anew(0);
  run(10);
  EXPECT_NEAR(since(from_s, 0).joules, 10 * world_->watts(0), tolerance_j(0));
  EXPECT_GT(since(from_s, 0).gap_s, 0);
}

TEST_P(Meters, AreSilentlyAbsentWhereThereIsNothing) {
  const auto bare = world_->without_sources();
  const Discovery discovery = bare->discover();
  EXPECT_EQ(discovery.meter, nullptr);
  if (world_->name() == "model") return;  // a machine without /proc is worth a word
  EXPECT_THAT(discovery.obstacles, IsEmpty());
}

TEST_P(Meters, SayWhichPermissionIsMissingAndHowToGiveIt) {
  world_->deny();
  const Discovery discovery = world_->discover();
  EXPECT_EQ(discovery.meter, nullptr);
  ASSERT_THAT(discovery.obstacles, Not(IsEmpty()));
  EXPECT_THAT(discovery.obstacles[0].why, testing::AnyOf(HasSubstr("ermission")));
  if (!world_->needs_permission()) return;
  EXPECT_THAT(discovery.obstacles[0].why,
              testing::AnyOf(HasSubstr("chmod"), HasSubstr("CAP_PERFMON"), HasSubstr("ask")));
}

std::string name_of(const testing::TestParamInfo<WorldEntry>& world) { return world.param.name; }

INSTANTIATE_TEST_SUITE_P(All, Meters, testing::ValuesIn(all_meter_worlds()), name_of);
INSTANTIATE_TEST_SUITE_P(All, CountersThatGoRound,
                         testing::ValuesIn(meter_worlds_with(&Traits::goes_round)), name_of);
INSTANTIATE_TEST_SUITE_P(All, MetersThatShowZeros,
                         testing::ValuesIn(meter_worlds_with(&Traits::shows_zeros)), name_of);
INSTANTIATE_TEST_SUITE_P(All, CountersThatAreSetAnew,
                         testing::ValuesIn(meter_worlds_with(&Traits::can_be_set_anew)), name_of);
INSTANTIATE_TEST_SUITE_P(All, MetersThatFallSilent,
                         testing::ValuesIn(meter_worlds_with(&Traits::can_fall_silent)), name_of);

}  // namespace
}  // namespace diapause::energy
