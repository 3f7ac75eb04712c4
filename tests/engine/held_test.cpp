// Tests that a restart takes what the program was told is held, also after calls have failed and
// the run went on.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <map>
#include <mutex>
#include <thread>

#include "engine/cluster.hpp"

namespace diapause::test_support {
namespace {

constexpr std::uint64_t kGoesOnFor = 5;  // versions after the one in which calls fail
constexpr std::size_t kKept = 2;         // versions of each level
constexpr char kKeeping[] = "[level1]\nkeep = 2\n[level2]\nkeep = 2\n";

// Says whether the program waits for a version before it takes the next one.
enum class Pace { waits, hurries };

struct HeldCase {
  std::string name;
  Shape shape;
  int level;
  std::uint64_t faulty;  // version in which calls fail
  Pace pace;
};

void PrintTo(const HeldCase& one, std::ostream* out) { *out << one.name; }

// The deepest level that any rank was told of each version.
class Told {
 public:
  void hear(std::uint64_t version, int level) {
    const std::lock_guard lock(mutex_);
    levels_[version] = std::max(levels_[version], level);
  }
  // Returns the newest versions of that level, newest first, at most `most` of them.
  std::vector<std::uint64_t> held(int level, std::size_t most) const {
    std::vector<std::uint64_t> versions;
    for (auto one = levels_.rbegin(); one != levels_.rend() && versions.size() < most; ++one) {
      if (one->second >= level) versions.push_back(one->first);
    }
    return versions;
  }
  std::string text() const {
    std::string text = "; told";
    for (const auto& [version, level] : levels_)
      text += " " + std::to_string(version) + ":L" + std::to_string(level);
    return text;
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, int> levels_;
};

// The call that the program makes when a version is done: what it says counts.
void hear_of(library::Engine& engine, std::uint64_t version, int level, Told& told) {
  const auto begun = engine.poll(version);
  if (!begun) return;  // it was refused before it was taken
  if (engine.wait(version, level, 60)) told.hear(version, level);
  while (engine.poll(version)->in_flight) std::this_thread::yield();
  told.hear(version, engine.poll(version)->level_reached);
}

// Takes versions until well after the faulty one. Calls fail as `plan` says while that one is
// taken.
void run_over(FaultKernel& kernel, const HeldCase& one, const FaultPlan& plan, Told& told) {
  std::barrier together(static_cast<std::ptrdiff_t>(one.shape.ranks));
  const auto once = [&](std::uint32_t rank, const auto& act) {
    together.arrive_and_wait();
    if (rank == 0) act();
    together.arrive_and_wait();
  };
  const std::uint64_t last = one.faulty + kGoesOnFor;
  const Status opened = run_job(kernel, one.shape,
                                [&](library::Engine& engine, Program& program, std::uint32_t rank) {
                                  for (std::uint64_t version = 1; version <= last; ++version) {
                                    if (version == one.faulty)
                                      once(rank, [&] { kernel.arm(plan); });
                                    program.compute(version);
                                    library::CheckpointInfo info;
                                    (void)engine.checkpoint(version, one.level, info);
                                    told.hear(version, info.level_reached);
                                    if (one.pace == Pace::hurries) continue;
                                    hear_of(engine, version, one.level, told);
                                    if (version == one.faulty) once(rank, [&] { kernel.disarm(); });
                                  }
                                  for (std::uint64_t version = 1; version <= last; ++version)
                                    hear_of(engine, version, one.level, told);
                                });
  EXPECT_TRUE(opened) << opened.error().message;
}

void expect_restart(VolatileDisk& disk, const HeldCase& one, std::uint64_t version,
                    const std::string& where) {
  const Restarted restarted = restart_job(disk, one.shape, version);
  ASSERT_TRUE(restarted.status) << where << ": version " << version << ": "
                                << restarted.status.error().message;
  EXPECT_EQ(restarted.version, version) << where;
  EXPECT_TRUE(restarted.intact) << where << ": version " << version << " holds other bytes";
}

// `kept` of each level are there.
void expect_held(VolatileDisk& disk, const HeldCase& one, const Told& told, std::size_t kept,
                 const std::string& where) {
  const std::vector<std::uint64_t> held = told.held(1, kept);
  ASSERT_FALSE(held.empty()) << where;
  const Restarted newest = restart_job(disk, one.shape);
  ASSERT_TRUE(newest.status) << where << ": " << newest.status.error().message;
  EXPECT_GE(newest.version, held.front()) << where << ": " << newest.reason;
  EXPECT_TRUE(newest.intact) << where;
  for (const std::uint64_t version : held) expect_restart(disk, one, version, where);
  if (one.level < 4 || ::testing::Test::HasFatalFailure()) return;
  disk.erase("/memory");
  for (const std::uint64_t version : told.held(4, kept))
    expect_restart(disk, one, version, where + " without memory");
}

std::string calls_near(const FaultKernel& kernel, std::uint64_t call) {
  const std::vector<std::string> trace = kernel.trace();
  std::string text;
  for (std::uint64_t i = call > 3 ? call - 3 : 0;
       i < std::min<std::uint64_t>(trace.size(), call + 6); ++i) {
    text += (i == call ? "\n  > " : "\n    ") + trace[i];
  }
  return text;
}

// Every `stride`-th place, from a different one for every fault.
void sweep(const HeldCase& one, std::uint64_t stride) {
  constexpr FaultPlan kFaults[] = {{Fault::fail_once, 0, Call::any, EIO, 1},
                                   {Fault::fail_once, 1, Call::any, EMFILE, 4},
                                   {Fault::fail_once, 2, Call::any, ENOSPC, 4}};
  for (FaultPlan plan : kFaults) {
    for (plan.index %= stride;; plan.index += stride) {
      VolatileDisk disk;
      FaultKernel kernel(disk);
      kernel.record_trace("");
      Told told;
      run_over(kernel, one, plan, told);
      const std::string where =
          std::string(std::to_string(plan.times)) + " times errno " + std::to_string(plan.error) +
          " from call " + std::to_string(plan.index) + " of version " + std::to_string(one.faulty) +
          told.text() + calls_near(kernel, plan.index);
      const bool done = !kernel.reached();
      // Versions that a full tier holds besides the newest one make room for the next.
      expect_held(disk, one, told, plan.error == ENOSPC ? 1 : kKept, where);
      if (::testing::Test::HasFailure()) return;
      if (done) break;
    }
    EXPECT_GT(plan.index, 60U) << "the sweep did not sweep";
  }
}

class Held : public ::testing::TestWithParam<HeldCase> {};

TEST_P(Held, IsWhatTheProgramWasToldThoughCallsFailAndTheRunGoesOn) { sweep(GetParam(), 11); }

class LongHeld : public ::testing::TestWithParam<HeldCase> {};

TEST_P(LongHeld, IsWhatTheProgramWasToldThoughAnyCallFailsAndTheRunGoesOn) { sweep(GetParam(), 1); }

struct Way {
  const char* name;
  const char* config;
};

HeldCase make_case(const Way& host, const Way& capture, const Way& store, int level) {
  HeldCase one;
  one.name = std::string(host.name) + capture.name + store.name + "L" + std::to_string(level);
  one.shape.ranks = 2;
  one.shape.ranks_per_node = 1;
  one.shape.elements = 2000;
  one.shape.config = std::string(kKeeping) + host.config + capture.config + store.config;
  one.level = level;
  one.faulty = 3;
  one.pace = Pace::waits;
  return one;
}

constexpr Way kInCalls{"InCalls", "[async]\nmode = \"off\"\n"};
constexpr Way kThread{"Thread", "[async]\nmode = \"thread\"\n"};
constexpr Way kCopy{"Copy", "[capture]\nstrategy = \"copy\"\n"};
constexpr Way kIncremental{"Incremental", "[capture]\nstrategy = \"incremental\"\n"};
constexpr Way kStaged{"Staged", ""};
constexpr Way kDirect{"Direct", "[global]\nmode = \"direct\"\n"};
constexpr Way kShared{"Shared", "[global]\nfiles = 1\n"};
constexpr Way kSmallGroup{"", "[level3]\nkeep = 2\ngroup_nodes = 2\n"};
constexpr Way kPacked{"Packed", "[codec]\nmethod = \"lz4\"\n"};

std::vector<HeldCase> quick_cases() {
  std::vector<HeldCase> all = {make_case(kInCalls, kCopy, kStaged, 1),
                               make_case(kThread, kCopy, kStaged, 1),
                               make_case(kThread, kIncremental, kStaged, 4)};
  return all;
}

std::vector<HeldCase> all_cases() {
  std::vector<HeldCase> all;
  for (const Way& host : {kInCalls, kThread}) {
    for (const Way& capture : {kCopy, kIncremental}) {
      all.push_back(make_case(host, capture, kStaged, 1));
      for (const Way& store : {kStaged, kDirect, kShared, kPacked})
        all.push_back(make_case(host, capture, store, 4));
    }
    for (const int level : {2, 3}) all.push_back(make_case(host, kCopy, kSmallGroup, level));
  }
  // From the first version on, and with files that were used before.
  for (const std::uint64_t faulty : {1, 6}) {
    for (const int level : {1, 4}) {
      all.push_back(make_case(kThread, kCopy, kStaged, level));
      all.back().faulty = faulty;
      all.back().name += "Faulty" + std::to_string(faulty);
    }
  }
  for (const int level : {1, 4}) {
    all.push_back(make_case(kThread, kCopy, kStaged, level));
    all.back().pace = Pace::hurries;
    all.back().name += "Hurried";
  }
  // Two ranks of one node, which one of them acts for.
  for (const int level : {1, 4}) {
    all.push_back(make_case(kThread, kIncremental, kStaged, level));
    all.back().shape.ranks_per_node = 2;
    all.back().name += "OneNode";
  }
  return all;
}

const auto held_name = [](const auto& test) { return test.param.name; };

INSTANTIATE_TEST_SUITE_P(Quick, Held, ::testing::ValuesIn(quick_cases()), held_name);
INSTANTIATE_TEST_SUITE_P(Long, LongHeld, ::testing::ValuesIn(all_cases()), held_name);

}  // namespace
}  // namespace diapause::test_support
