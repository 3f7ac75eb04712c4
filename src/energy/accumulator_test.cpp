#include "energy/accumulator.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace diapause::energy {
namespace {

constexpr std::uint64_t kRange = 262143328850;  // uJ: 2^32 - 1 steps of 61 uJ

Zone counter() {
  Zone zone;
  zone.range = kRange;
  zone.most_w = 5000;
  return zone;
}

Zone sensor() {
  Zone zone;
  zone.quantity = Quantity::power;
  zone.most_w = 5000;
  return zone;
}

// Feeds readings that are 0.1 s apart.
class Feed {
 public:
  explicit Feed(const Zone& zone) : accumulator_(zone, 0.1) {}
  std::optional<Point> operator()(std::uint64_t count) { return at(time_s_ + 0.1, count); }
  std::optional<Point> at(double time_s, std::uint64_t count) {
    time_s_ = time_s;
    const auto point = accumulator_.add(time_s, count);
    if (point) last_ = *point;
    return point;
  }
  void skip(double seconds) { time_s_ += seconds; }  // the readings of this time fail
  double joules() const { return last_.joules; }
  double covered_s() const { return last_.covered_s; }
  double time_s() const { return time_s_; }
  const Accumulator& accumulator() const { return accumulator_; }

 private:
  Accumulator accumulator_;
  double time_s_ = 100;
  Point last_;
};

TEST(Counter, FirstReadingIsNoEnergy) {
  Feed feed(counter());
  feed(123456789000);
  EXPECT_EQ(feed.joules(), 0);
  EXPECT_EQ(feed.covered_s(), 0);
}

TEST(Counter, DifferencesAddUp) {
  Feed feed(counter());
  feed(1000000);
  feed(11000000);
  feed(12500000);
  EXPECT_DOUBLE_EQ(feed.joules(), 11.5);
  EXPECT_NEAR(feed.covered_s(), 0.2, 1e-9);
}

TEST(Counter, ThatGoesRoundGoesOn) {
  Feed feed(counter());
  feed(kRange - 5000000);
  feed(2000000);
  EXPECT_DOUBLE_EQ(feed.joules(), 7);
}

TEST(Counter, ThatGoesRoundManyTimesLosesNothing) {
  Feed feed(counter());
  constexpr std::uint64_t kStep = 30000000;  // 300 W
  std::uint64_t count = 77;
  constexpr int kSteps = 50000;  // five times round
  for (int i = 0; i <= kSteps; ++i, count = (count + kStep) % kRange) feed(count);
  EXPECT_DOUBLE_EQ(feed.joules(), 1e-6 * kStep * kSteps);
  EXPECT_EQ(feed.accumulator().accidents(), 0U);
}

TEST(Counter, PauseInWhichItMayHaveGoneRoundTwiceIsAGap) {
  Feed feed(counter());
  feed(1000000);
  feed(31000000);  // 300 W: round in 874 s
  feed.at(feed.time_s() + 2000, 40000000);
  EXPECT_DOUBLE_EQ(feed.joules(), 30);
  EXPECT_NEAR(feed.covered_s(), 0.1, 1e-9);
  feed(70000000);
  EXPECT_DOUBLE_EQ(feed.joules(), 60);
}

// 34 s of 330 W are more than three rounds of 3 kJ; only the processor's limit tells that.
TEST(Counter, PauseInWhichItMayHaveGoneRoundAtTheHighestPowerIsAGap) {
  Zone zone = counter();
  zone.range = 3000000000;
  zone.peak_w = 400;
  Feed feed(zone);
  feed(1000000);
  feed(3000000);  // 20 W so far
  feed.at(feed.time_s() + 34, 2763000000);
  feed(2765000000);
  EXPECT_DOUBLE_EQ(feed.joules(), 4);
  EXPECT_NEAR(feed.covered_s(), 0.2, 1e-9);
}

TEST(Counter, PauseInWhichItCannotHaveGoneRoundCostsNothing) {
  Zone zone = counter();
  zone.peak_w = 400;
  Feed feed(zone);
  feed(1000000);
  feed(31000000);
  feed.at(feed.time_s() + 600, 120031000000);
  EXPECT_DOUBLE_EQ(feed.joules(), 120030);
}

TEST(Counter, SingleZeroIsNoReading) {
  Feed feed(counter());
  feed(200000000000);
  feed(200010000000);
  EXPECT_FALSE(feed(0).has_value());
  feed(200030000000);
  EXPECT_DOUBLE_EQ(feed.joules(), 30);
  EXPECT_NEAR(feed.covered_s(), 0.3, 1e-9);
}

TEST(Counter, ThatIsSetToZeroBeginsAnewAfterAGap) {
  Zone zone = counter();
  for (const std::uint64_t range : {kRange, std::uint64_t{0}}) {
    zone.range = range;
    Feed feed(zone);
    feed(100000000000);
    feed(100010000000);
    feed(5000000);
    EXPECT_DOUBLE_EQ(feed.joules(), 10) << range;
    EXPECT_NEAR(feed.covered_s(), 0.1, 1e-9);
    feed(15000000);
    EXPECT_DOUBLE_EQ(feed.joules(), 20) << range;
  }
}

TEST(Counter, StepThatNoMachineCanTakeIsAGap) {
  Feed feed(counter());
  feed(1000000);
  feed(11000000);
  feed(90000000000);
  EXPECT_DOUBLE_EQ(feed.joules(), 10);
  EXPECT_EQ(feed.accumulator().accidents(), 1U);
}

TEST(Counter, ThatStandsStillIsAGapFromThen) {
  Feed feed(counter());
  feed(1000000);
  feed(11000000);
  for (int i = 0; i < 10; ++i) feed(11000000);
  EXPECT_NEAR(feed.covered_s(), 1.1, 1e-9) << "a second is too short to tell";
  for (int i = 0; i < 90; ++i) feed(11000000);
  EXPECT_DOUBLE_EQ(feed.joules(), 10);
  EXPECT_NEAR(feed.covered_s(), 0.1, 1e-9);
}

// Reads a counter at 100 W that stops counting at the third second for the given time. It then goes
// on from where it stopped, or shows that it has counted all the while.
Feed stopped_for(double seconds, double counted_meanwhile_j) {
  Feed feed(counter());
  for (int i = 0; i <= 30; ++i) feed.at(0.1 * i, static_cast<std::uint64_t>(10e6 * i));
  const auto still = static_cast<int>(std::lround(10 * seconds));
  for (int i = 1; i <= still; ++i) feed.at(3 + 0.1 * i, static_cast<std::uint64_t>(300e6));
  for (int i = 1; i <= 30; ++i) {
    const double joules = 300 + counted_meanwhile_j + 10 * i;
    feed.at(3 + seconds + 0.1 * i, static_cast<std::uint64_t>(1e6 * joules));
  }
  return feed;
}

TEST(Counter, ThatGoesOnFromWhereItStoppedHasLostWhatWasUsedMeanwhile) {
  for (const double seconds : {0.5, 1.5, 30.0}) {
    const Feed lost = stopped_for(seconds, 0);
    EXPECT_NEAR(lost.joules(), 590, 1e-6) << seconds;
    EXPECT_NEAR(lost.covered_s(), 5.9, 1e-6) << seconds;
    const Feed late = stopped_for(seconds, 100 * seconds);
    EXPECT_NEAR(late.joules(), 600 + 100 * seconds, 1e-6) << seconds;
    EXPECT_NEAR(late.covered_s(), 6 + seconds, 1e-6) << seconds;
  }
}

TEST(Counter, ThatWasOnlyShownLateCoversAllTheTime) {
  Feed feed(counter());
  feed(1000000);
  feed(11000000);
  for (int i = 0; i < 99; ++i) feed(11000000);
  feed(1011000000);
  EXPECT_DOUBLE_EQ(feed.joules(), 1010);
  EXPECT_NEAR(feed.covered_s(), 10.1, 1e-6);
}

TEST(Counter, ThatHasNeverMovedIsNotAlive) {
  Feed feed(counter());
  for (int i = 0; i < 50; ++i) feed(0);
  EXPECT_FALSE(feed.accumulator().has_moved());
  EXPECT_EQ(feed.covered_s(), 0);
}

TEST(Counter, ReadingsThatFailCostNoEnergy) {
  Feed feed(counter());
  feed(1000000);
  feed(11000000);
  feed.skip(30);
  feed(3011000000);
  EXPECT_DOUBLE_EQ(feed.joules(), 3010);
  EXPECT_NEAR(feed.covered_s(), 30.2, 1e-6);
}

TEST(Counter, ReadingOfAnEarlierTimeIsIgnored) {
  Feed feed(counter());
  feed.at(10, 1000000);
  feed.at(11, 2000000);
  EXPECT_FALSE(feed.at(10.5, 9000000).has_value());
  EXPECT_DOUBLE_EQ(feed.joules(), 1);
}

TEST(Counter, CountsOnWhen64BitsAreFull) {
  Zone zone = counter();
  zone.unit = std::ldexp(1.0, -32);  // perf: 2^64 counts are 4.3 GJ
  zone.range = std::numeric_limits<std::uint64_t>::max();
  Feed feed(zone);
  const auto step = static_cast<std::uint64_t>(std::ldexp(1e6, 32));
  std::uint64_t count = 5;
  for (int i = 0; i <= 10000; ++i, count += step) feed.at(1000.0 * i, count);
  EXPECT_NEAR(feed.joules(), 1e10, 1e-3);
  EXPECT_EQ(feed.accumulator().accidents(), 0U);
}

TEST(Power, IsIntegrated) {
  Feed feed(sensor());
  feed(100000000);
  feed(100000000);
  feed(200000000);
  EXPECT_NEAR(feed.joules(), 10 + 15, 1e-9);
  EXPECT_NEAR(feed.covered_s(), 0.2, 1e-9);
}

TEST(Power, SingleZeroIsBridged) {
  Feed feed(sensor());
  feed(100000000);
  EXPECT_FALSE(feed(0).has_value());
  feed(100000000);
  EXPECT_NEAR(feed.joules(), 20, 1e-9);
}

TEST(Power, OutlierIsNoReading) {
  Feed feed(sensor());
  feed(100000000);
  EXPECT_FALSE(feed(65535000000).has_value());
  feed(100000000);
  EXPECT_NEAR(feed.joules(), 20, 1e-9);
}

TEST(Power, ReadingsFarApartLeaveAGap) {
  Feed feed(sensor());
  feed(100000000);
  feed(100000000);
  feed.skip(5);
  feed(100000000);
  EXPECT_NEAR(feed.joules(), 10, 1e-9);
  EXPECT_NEAR(feed.covered_s(), 0.1, 1e-9);
  feed(100000000);
  EXPECT_NEAR(feed.joules(), 20, 1e-9);
}

TEST(Power, OfASlowSensorIsNotFullOfGaps) {
  Zone zone = sensor();
  zone.update_s = 2;
  Feed feed(zone);
  for (int i = 0; i < 5; ++i) feed.at(2.0 * i, 50000000);
  EXPECT_NEAR(feed.joules(), 400, 1e-9);
  EXPECT_NEAR(feed.covered_s(), 8, 1e-9);
}

// At 100 W, 262 kJ more would be 17 kW, and 61 kJ more after 60 s would be 1 kW.
TEST(Accumulator, ACounterSetAnewInASilenceHasNotGoneRound) {
  Zone zone;
  zone.range = 262143328850;
  zone.most_w = 5000;
  for (const double silence_s : {15.0, 60.0}) {
    Accumulator accumulator(zone, 0.1);
    std::optional<Point> last;
    for (int i = 0; i <= 100; ++i) {
      last = accumulator.add(0.1 * i, static_cast<std::uint64_t>((201000 + 10 * i) * 1e6));
    }
    for (int i = 1; i <= 100; ++i) {
      const auto point = accumulator.add(10 + silence_s + 0.1 * i,
                                         static_cast<std::uint64_t>((200 + 10 * i) * 1e6));
      if (point) last = point;
    }
    EXPECT_NEAR(last->joules, 2000, 25) << silence_s;
    EXPECT_NEAR(last->covered_s, 20, 0.25) << silence_s;
  }
}

TEST(Accumulator, OneReadingFarOffCostsNothing) {
  for (const std::int64_t off_j : {-30, -400, 50000}) {
    Zone zone;
    zone.range = 262143328850;
    zone.most_w = 5000;
    Accumulator accumulator(zone, 0.1);
    std::optional<Point> last;
    for (int i = 0; i <= 100; ++i) {
      const std::int64_t joules = 100000 + 10 * i + (i == 50 ? off_j : 0);
      const auto point = accumulator.add(0.1 * i, static_cast<std::uint64_t>(joules * 1000000));
      if (point) last = point;
    }
    EXPECT_NEAR(last->joules, 1000, 1e-6) << off_j;
    EXPECT_NEAR(last->covered_s, 10, 1e-6) << off_j;
  }
}

}  // namespace
}  // namespace diapause::energy
