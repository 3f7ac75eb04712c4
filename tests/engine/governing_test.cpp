// Tests what the governor does around the steps of a checkpoint in the background, as a dry run
// says it.
#include "engine/accounting/governing.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <mutex>
#include <thread>

#include "engine/cluster.hpp"
#include "engine/ledger_events.hpp"

namespace diapause::test_support {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Slow enough to be worth slowing: a flush of a node takes some 0.1 s.
constexpr const char* kConfig = "[async]\nmode = \"thread\"\nflush_mib_s = 0.2\n";

class Governing : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("DIAPAUSE_TEST_ASYNC") != nullptr) GTEST_SKIP() << "sets its own mode";
  }

  // Takes version 1, waits some time, calls `between`, and takes version 2. Returns what the
  // governor said.
  std::vector<std::string> two_checkpoints(const std::string& governor,
                                           const std::function<void()>& between) {
    Shape shape;
    shape.ranks = 2;
    shape.elements = elements_;
    shape.config = kConfig + governor;
    std::mutex mutex;
    std::vector<std::string> said;
    shape.log = [&](Severity, const std::string& text) {
      const std::lock_guard lock(mutex);
      if (text.find("governor") != std::string::npos) said.push_back(text);
    };
    const Status opened =
        run_job(disk_, shape, [&](library::Engine& engine, Program& program, std::uint32_t rank) {
          library::CheckpointInfo info;
          program.compute(1);
          EXPECT_TRUE(engine.checkpoint(1, 4, info));
          EXPECT_TRUE(engine.wait(1, 4, 60));
          std::this_thread::sleep_for(
              std::chrono::milliseconds(400));  // the next one is not due before
          if (rank == 0) between();
          program.compute(2);
          EXPECT_TRUE(engine.checkpoint(2, 4, info));
          (void)engine.wait(2, 4, 60);
          (void)engine.close(60);
        });
    EXPECT_TRUE(opened) << opened.error().message;
    return said;
  }

  // On a busy machine the first checkpoint may take long enough to be governed too.
  static std::vector<std::string> of_the_second(std::vector<std::string> said) {
    if (said.size() > 2) said.erase(said.begin(), said.end() - 2);
    return said;
  }

  std::size_t elements_ = 4000;
  VolatileDisk disk_;
};

TEST_F(Governing, SlowsAFlushInTheBackgroundAndLetsGoAfterIt) {
  const auto said =
      two_checkpoints("[governor]\npolicy = \"fixed\"\nactuator = \"dry-run\"\n", [] {});
  EXPECT_THAT(of_the_second(said),
              ElementsAre(HasSubstr("1 threads to 0.850"), HasSubstr("put the clock back")));
}

TEST_F(Governing, SlowsAFlushThatCompressesAsCompressionIsSlowed) {
  elements_ = 200000;  // little is left of them
  const auto said = two_checkpoints(
      "[codec]\nmethod = \"lz4\"\n[governor]\npolicy = \"fixed\"\nactuator = \"dry-run\"\n", [] {});
  EXPECT_THAT(of_the_second(said),
              ElementsAre(HasSubstr("1 threads to 0.875"), HasSubstr("put the clock back")));
}

TEST_F(Governing, IsOnTheBill) {
  two_checkpoints("[governor]\npolicy = \"fixed\"\nactuator = \"dry-run\"\n", [] {});
  const auto checkpoints = ledger_events(disk_, "checkpoint");
  ASSERT_EQ(checkpoints.size(), 2u);
  const auto slowed = checkpoints[1]["slowed"];
  EXPECT_EQ(slowed["actuator"], "dry-run");
  // On a busy machine publishing may take long enough to be governed too.
  EXPECT_EQ(slowed["phases"]["global"].dump(), R"({"asked":0.85,"obtained":1.0})");
}

TEST_F(Governing, IsOnTheBillOfThePhase) {
  two_checkpoints("[governor]\npolicy = \"fixed\"\nactuator = \"dry-run\"\n", [] {});
  std::vector<nlohmann::json> slowed;
  for (const auto& line : ledger_events(disk_, "energy")) {
    for (const auto& phase : line["phases"]) {
      if (phase.contains("slowed") && phase["phase"] != "publish") slowed.push_back(phase);
    }
  }
  ASSERT_EQ(slowed.size(), 1u);
  EXPECT_EQ(slowed[0]["phase"], "global");
  EXPECT_EQ(slowed[0]["version"], 2);
  EXPECT_EQ(slowed[0]["slowed"].dump(), R"({"actuator":"dry-run","asked":0.85,"obtained":1.0})");
}

TEST_F(Governing, LetsGoAfterAFlushThatFailed) {
  const auto lose = [&] { EXPECT_TRUE(disk_.erase("/home/job/diapause")); };
  const auto said =
      two_checkpoints("[governor]\npolicy = \"fixed\"\nactuator = \"dry-run\"\n", lose);
  EXPECT_THAT(said, ElementsAre(HasSubstr("would slow"), HasSubstr("put the clock back")));
}

TEST_F(Governing, DoesNothingUnlessItIsAskedTo) {
  EXPECT_THAT(two_checkpoints("", [] {}), IsEmpty());
}

energy::Profile profile() {
  energy::Profile profile;
  profile.base_clock_ghz = energy::Number{2, ""};
  profile.domains = {{energy::Domain::package, {20, ""}, {80, ""}, {}},
                     {energy::Domain::other, {40, ""}, {10, ""}, {}}};
  profile.curve = energy::PowerCurve{{0.0625, ""}, {3, ""}, {0.5, ""}};  // the value is 1 at 2 GHz
  return profile;
}

TEST(PowerOfANode, IsAllOfItWhereAllWait) {
  const auto power = engine::power_of(profile(), policy::PhaseKind::write, governor::Scope::job, 8);
  ASSERT_TRUE(power);
  EXPECT_THAT(power->cpu.at(1), DoubleNear(100, 1e-9));
  EXPECT_THAT(power->cpu.at(0.5), DoubleNear(56.25, 1e-9));
  EXPECT_THAT(power->rest, DoubleNear(50, 1e-9));
}

TEST(PowerOfANode, IsThatOfACoreWhereTheProgramRunsAnyway) {
  const auto power =
      engine::power_of(profile(), policy::PhaseKind::write, governor::Scope::engine, 8);
  ASSERT_TRUE(power);
  EXPECT_THAT(power->cpu.at(1), DoubleNear(10, 1e-9));
  EXPECT_EQ(power->rest, 0);
}

// Of the 100 W of the package, 50 W depend on the clock, and an eighth of these on that of one
// core. A busy core draws 3.75 W more.
TEST(PowerOfANode, OfACoreDependsOnTheClockByItsDynamicPartAlone) {
  const auto power =
      engine::power_of(profile(), policy::PhaseKind::write, governor::Scope::engine, 8);
  ASSERT_TRUE(power);
  EXPECT_THAT(power->cpu.at(0.5), DoubleNear(3.75 + 6.25 / 8, 1e-9));

  // A curve that was measured with one core busy: 30 W at the base clock, of which 10 % depend on
  // the clock.
  energy::Profile of_one_core = profile();
  of_one_core.phases["write"] = {{0.0125, ""}, {3, ""}, {0.9, ""}};
  const auto alone =
      engine::power_of(of_one_core, policy::PhaseKind::write, governor::Scope::engine, 8);
  ASSERT_TRUE(alone);
  EXPECT_THAT(alone->cpu.at(1), DoubleNear(10, 1e-9));
  EXPECT_THAT(alone->cpu.at(0.5), DoubleNear(7 + 3.0 / 8, 1e-9));
}

TEST(PowerOfANode, IsNotKnownWithoutACurveOverTheClock) {
  energy::Profile flat = profile();
  flat.curve.reset();
  EXPECT_FALSE(engine::power_of(flat, policy::PhaseKind::write, governor::Scope::job, 8));
}

}  // namespace
}  // namespace diapause::test_support
