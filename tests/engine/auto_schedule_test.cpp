// schedule = "auto": the intervals follow what the ledger says that checkpoints cost, alike on all
// ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>

#include "energy/measured_job.hpp"
#include "engine/cluster.hpp"
#include "engine/ledger_events.hpp"
#include "policy/pace_choice.hpp"
#include "policy/schedule.hpp"

namespace diapause::test_support {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// A checkpoint that was taken: at which call, and at which level.
using Taken = std::vector<std::pair<std::uint64_t, int>>;

struct AutoSchedule : testing::Test {
  VolatileDisk disk;
  Shape shape;

  AutoSchedule() {
    shape.ranks = 4;
    shape.config =
        "[failures]\nmtbf_process_s = 5\nmtbf_node_s = 10\nmtbf_nodes_s = 20\nmtbf_system_s = 40\n";
    shape.adjust = [](library::OpenRequest& request, std::uint32_t) {
      request.environment = {{"DIAPAUSE_SCHEDULE", "auto"}};
    };
  }

  // Runs until rank 0 says, after a checkpoint, that it is enough. Returns what every rank has
  // taken.
  std::vector<Taken> run_until(const std::function<bool()>& is_enough) {
    std::vector<Taken> taken(shape.ranks);
    std::atomic<bool> ends = false;
    std::barrier all(shape.ranks);
    const Status opened =
        run_job(disk, shape, [&](library::Engine& engine, Program& program, std::uint32_t rank) {
          for (std::uint64_t call = 1; !ends; ++call) {
            program.compute(call);
            library::CheckpointInfo info;
            EXPECT_TRUE(engine.snapshot(call, info));
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            if (!info.taken) continue;
            taken[rank].emplace_back(call, info.level_asked);
            if (rank == 0) ends = is_enough();
            all.arrive_and_wait();
          }
        });
    EXPECT_TRUE(opened);
    return taken;
  }
};

TEST_F(AutoSchedule, FollowsWhatIsMeasuredAlikeOnAllRanksAndSaysWhy) {
  const std::vector<Taken> taken = run_until([&] {
    return ledger_events(disk, "schedule").size() >= 2 &&
           !ledger_events(disk, "checkpoint").empty();
  });
  for (const Taken& of_rank : taken) EXPECT_EQ(of_rank, taken[0]);
  const std::vector<json> choices = ledger_events(disk, "schedule");
  EXPECT_EQ(choices[0]["number"], 1);
  EXPECT_EQ(choices[0]["goal"], "time");
  EXPECT_THAT(choices[0]["reason"].get<std::string>(), HasSubstr("first choice"));
  EXPECT_EQ(choices[0]["levels"][0]["checkpoints"], 0)
      << "what nobody has measured is told to be so";
  EXPECT_EQ(choices[1]["number"], 2);
  EXPECT_THAT(choices[1]["reason"].get<std::string>(), HasSubstr("before"));
  EXPECT_GT(choices[1]["saves"].get<double>(), 0);
  const Restarted restarted = restart_job(disk, shape);
  EXPECT_TRUE(restarted.intact);
  EXPECT_EQ(restarted.version, taken[0].back().first);
}

TEST_F(AutoSchedule, BeginsAnewWithWhatEarlierStartsHaveMeasured) {
  checkpoint_job(disk, shape, {{1, 4}, {2, 1}, {3, 2}});
  run_until([] { return true; });
  json first;
  for (const json& choice : ledger_events(disk, "schedule")) {
    if (choice["number"] == 1) first = choice;
  }
  EXPECT_THAT(first["reason"].get<std::string>(), HasSubstr("first choice"));
  const json measured = ledger_events(disk, "checkpoint").front();
  for (const json& level : first["levels"]) {
    EXPECT_EQ(level["checkpoints"], level["level"] == 3 ? 0 : 1) << level;
    if (level["level"] == 4) {
      EXPECT_EQ(level["blocked_s"], measured["blocked_s"]);
    }
  }
}

// Otherwise every checkpoint would be one of a level whose cost is only hoped for.
TEST_F(AutoSchedule, AssumesNoLevelToBlockLessThanThoseThatItHasSeen) {
  checkpoint_job(disk, shape, {{1, 1}});
  run_until([] { return true; });
  json first;
  for (const json& choice : ledger_events(disk, "schedule")) {
    if (choice["number"] == 1) first = choice;
  }
  const double seen_s = ledger_events(disk, "checkpoint").front()["blocked_s"];
  ASSERT_EQ(first["levels"].size(), 4u);
  for (const json& level : first["levels"]) EXPECT_GE(level["blocked_s"], seen_s);
}

TEST_F(AutoSchedule, TakesNoLevelThatTheJobHasTooFewNodesFor) {
  shape.ranks = 2;
  run_until([&] { return !ledger_events(disk, "schedule").empty(); });
  const json first = ledger_events(disk, "schedule").front();
  ASSERT_EQ(first["levels"].size(), 2u);
  EXPECT_EQ(first["levels"][0]["level"], 1);
  EXPECT_EQ(first["levels"][1]["level"], 4);
  EXPECT_NEAR(first["levels"][1]["mtbf_s"].get<double>(), 1 / (1 / 10. + 1 / 20. + 1 / 40.), 1e-9);
}

// Plays the same without a machine: hours of a job whose storage becomes slow, by a virtual clock
// and through real lines.
struct VirtualJob {
  static constexpr double kCall_s = 2;
  const model::Powers powers{300, 150, 150, 100, 30};
  double storage_s = 20;
  double now_s = 0;
  std::uint64_t version = 0;
  config::Settings settings;
  policy::PaceChoice choice;
  policy::Schedule schedule;
  energy::MeasuredJobReader reader;
  std::vector<policy::PaceDecision> decisions;
  policy::Pace pace;
  double stood_s = 0;

  VirtualJob() : settings(on()), choice(settings.auto_schedule), schedule(settings) {}
  static config::Settings on() {
    config::Settings settings;
    settings.auto_schedule.is_on = true;
    return settings;
  }

  // The levels as they are in truth.
  std::vector<model::Level> levels() const {
    return {{1, 3, 0, 0, 3, 10, 1 / 20000.},
            {4, 3 + storage_s, 0, 0, 3 + storage_s, 60, 1 / 200000.}};
  }
  // What is known about them.
  policy::PaceInputs inputs() const {
    std::vector<model::Level> known = levels();
    const energy::MeasuredJob measured = reader.job();
    for (model::Level& level : known) {
      level.blocked_s =
          measured.levels[static_cast<std::size_t>(level.number)].blocked_s.value_or(1);
      level.restart_s = level.blocked_s;
    }
    return {known, powers};
  }
  void consider() {
    if (auto decision = choice.consider(inputs())) {
      pace = decision->pace;
      decisions.push_back(std::move(*decision));
    }
  }
  void run_until(double end_s) {
    if (decisions.empty()) consider();
    for (; now_s < end_s; now_s += kCall_s) {
      if (!schedule.tick()) continue;
      schedule.follow(pace);
      const int level = schedule.decide(now_s);
      if (level != 0) take(level);
    }
  }
  void take(int level) {
    const double blocked_s = level == 1 ? 3 : 3 + storage_s;
    const json line = {{"schema", 1},
                       {"event", "checkpoint"},
                       {"time_unix_s", now_s},
                       {"version", ++version},
                       {"level_reached", level},
                       {"blocked_s", blocked_s},
                       {"phases", {{"capture", blocked_s}}}};
    reader.add_line(line.dump());
    now_s += blocked_s;
    stood_s += blocked_s;
    consider();
    schedule.follow(pace);
    schedule.taken(level, now_s);
  }
};

TEST(AutoScheduleByAVirtualClock, ComesToTheOptimumAndFollowsAStorageThatBecomesSlow) {
  VirtualJob job;
  job.run_until(100'000);
  const auto overhead = [&](const model::Pattern& pattern) {
    return model::cost_of(job.levels(), pattern).wall_per_work() - 1;
  };
  const auto least = [&] {
    return overhead(model::best_plan(job.levels(), job.powers, model::Goal::time)->pattern);
  };
  EXPECT_LE(overhead(job.decisions.back().plan.pattern), 1.06 * least());
  const std::size_t before = job.decisions.size();
  EXPECT_LE(before, 6u);
  job.storage_s = 400;
  EXPECT_GT(overhead(job.decisions.back().plan.pattern), 1.1 * least())
      << "or there is nothing to follow";
  job.run_until(3'000'000);
  EXPECT_GT(job.decisions.size(), before);
  EXPECT_LE(job.decisions.size(), before + 6) << "it changes its mind slowly";
  EXPECT_LE(overhead(job.decisions.back().plan.pattern), 1.06 * least());
  EXPECT_THAT(job.decisions.back().reason, HasSubstr("level 4 blocks: 403 s"));
}

TEST(AutoScheduleByAVirtualClock, SpendsAsMuchOnCheckpointsAsTheOptimum) {
  VirtualJob job;
  job.run_until(100'000);
  const double from_s = job.now_s;
  job.stood_s = 0;
  job.run_until(1'000'000);
  const auto best = model::best_plan(job.levels(), job.powers, model::Goal::time);
  // Without failures, which this run has none of.
  std::vector<model::Level> sound = job.levels();
  for (model::Level& level : sound) level.failures_per_s = 0;
  const model::Cost cost = model::cost_of(sound, best->pattern);
  const double share = cost.times.checkpointing_s / cost.times.wall_s();
  EXPECT_NEAR(job.stood_s / (job.now_s - from_s) / share, 1, 0.2);
}

}  // namespace
}  // namespace diapause::test_support
