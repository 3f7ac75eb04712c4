#include "comm/pause.hpp"

#include <gmock/gmock.h>

namespace diapause::comm {
namespace {

using namespace std::chrono_literals;

TEST(Pause, AnAlertRankDoesNotSleepThroughWhatComesSoon) {
  EXPECT_EQ(pause_after(0us, Waiting::alert), 0us);
  EXPECT_EQ(pause_after(900us, Waiting::alert), 0us);
}

TEST(Pause, AnAlertRankThatWaitsForLongSleeps) {
  EXPECT_GT(pause_after(1ms, Waiting::alert), 0us);
  EXPECT_EQ(pause_after(1s, Waiting::alert), 500us);
}

TEST(Pause, ANapIsASmallPartOfTheWait) {
  for (auto waited = Waited(2ms); waited < 1s; waited *= 2) {
    EXPECT_LE(pause_after(waited, Waiting::alert), waited / 16);
  }
}

TEST(Pause, AnAlertRankKeepsItsOwnBytesMoving) {
  constexpr std::uint64_t kBytes = 64 << 20;
  EXPECT_EQ(pause_after(100ms, Waiting::alert, kBytes), 0us);
  EXPECT_GT(pause_after(1s, Waiting::alert, kBytes), 0us);
}

TEST(Pause, AnAlertRankKeepsItsProcessorOnlyForWhatComesAtOnce) {
  EXPECT_FALSE(gives_way_after(0us));
  EXPECT_FALSE(gives_way_after(20us));
  EXPECT_TRUE(gives_way_after(200us));
}

TEST(Pause, APatientRankSleepsAtOnce) {
  EXPECT_EQ(pause_after(0us, Waiting::patient), 20us);
  EXPECT_EQ(pause_after(1s, Waiting::patient), 500us);
}

}  // namespace
}  // namespace diapause::comm
