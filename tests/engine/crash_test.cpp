// The crash-point sweep: at every system call of a checkpoint, what comes back is the newest
// published version or the one before, whole, never anything else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/cluster.hpp"

namespace diapause::test_support {
namespace {

Shape one_process() {
  Shape shape;
  shape.ranks = 1;
  shape.ranks_per_node = 1;
  shape.elements = 300;
  return shape;
}

Shape two_nodes() {
  Shape shape;
  shape.ranks = 2;
  shape.ranks_per_node = 1;
  shape.elements = 300;
  shape.config = "[level3]\ngroup_nodes = 2\n";
  return shape;
}

Shape on_disk(Shape shape) {
  shape.config +=
      "[local]\npath = \"/memory/disk\"\n[level1]\ntier = \"local\"\n[level2]\ntier = \"local\"\n";
  if (shape.ranks == 1) shape.config += "[level3]\ntier = \"local\"\n";
  return shape;
}

Shape in_shared_files(Shape shape) {
  shape.config += "[global]\nfiles = 1\n";
  return shape;
}

// Versions 1 and 2 exist. Version 3 is taken over a kernel with a fault, and what the program is
// told is returned.
struct Attempt {
  bool opened = false;
  bool succeeded = false;
  int reached = 0;
};

Attempt take_third(sys::Kernel& kernel, const Shape& shape, int level) {
  Attempt attempt;
  std::mutex mutex;
  const Status opened =
      run_job(kernel, shape, [&](library::Engine& engine, Program& program, std::uint32_t rank) {
        program.compute(3);
        library::CheckpointInfo info;
        const Status done = take(engine, 3, level, info);
        const std::lock_guard lock(mutex);
        attempt.succeeded = (rank == 0 || attempt.succeeded) && done.has_value();
        attempt.reached = info.level_reached;
      });
  attempt.opened = opened.has_value();
  return attempt;
}

// The faulty call and those around it.
std::string around(const FaultKernel& kernel, std::uint64_t call) {
  const std::vector<std::string> trace = kernel.trace();
  std::string text;
  for (std::uint64_t i = call > 3 ? call - 3 : 0;
       i < std::min<std::uint64_t>(trace.size(), call + 3); ++i) {
    text += (i == call ? "\n  > " : "\n    ") + trace[i];
  }
  return text;
}

void expect_good(sys::Kernel& kernel, const Shape& shape, const Attempt& attempt,
                 const std::string& where) {
  const Restarted restarted = restart_job(kernel, shape);
  ASSERT_TRUE(restarted.status) << where << ": " << restarted.status.error().message;
  EXPECT_TRUE(restarted.intact) << where;
  EXPECT_TRUE(restarted.version == 3 || (restarted.version == 2 && !attempt.succeeded))
      << where << ": version " << restarted.version << " came back";
  // The job goes on, too: the leftovers are in nobody's way.
  checkpoint_job(kernel, shape, {{4, 1}});
  EXPECT_EQ(restart_job(kernel, shape).version, 4u) << where;
}

struct Sweep {
  std::string name;
  Shape shape;
  int level;
  bool power_loss;  // false: only the processes die
};

void PrintTo(const Sweep& sweep, std::ostream* out) { *out << sweep.name; }

class CrashPoint : public ::testing::TestWithParam<Sweep> {};

TEST_P(CrashPoint, StoppingAtAnyCallLeavesAGoodVersion) {
  const Sweep& sweep = GetParam();
  constexpr PowerLoss kModes[] = {PowerLoss::lose_all, PowerLoss::keep_names_lose_data,
                                  PowerLoss::keep_data_lose_names, PowerLoss::random};
  for (std::uint64_t call = 0;; ++call) {
    VolatileDisk disk;
    checkpoint_job(disk, sweep.shape, {{1, sweep.level}, {2, sweep.level}});
    FaultKernel kernel(disk, {Fault::stop, call, Call::any, EIO});
    kernel.record_trace("");
    const Attempt attempt = take_third(kernel, sweep.shape, sweep.level);
    const bool done = !kernel.reached();
    if (sweep.power_loss) disk.power_loss(kModes[call % 4], call);
    expect_good(disk, sweep.shape, attempt,
                "stopped at call " + std::to_string(call) + around(kernel, call));
    if (done || HasFailure()) {
      EXPECT_GT(call, 30u) << "the sweep did not sweep";
      return;
    }
  }
}

constexpr FaultPlan kFaults[] = {{Fault::fail_once, 0, Call::any, EIO},
                                 {Fault::fail_once, 0, Call::any, ENOSPC},
                                 {Fault::interrupt_once, 0, Call::any, EINTR},
                                 {Fault::short_transfer, 0, Call::any, 0}};

// Takes version 3 with this fault, and restarts. Returns whether the checkpoint made the call that
// fails.
bool survives(const FaultPlan& plan, const Sweep& sweep) {
  VolatileDisk disk;
  checkpoint_job(disk, sweep.shape, {{1, sweep.level}, {2, sweep.level}});
  FaultKernel kernel(disk, plan);
  kernel.record_trace("");
  const Attempt attempt = take_third(kernel, sweep.shape, sweep.level);
  const bool harmless = plan.fault == Fault::interrupt_once || plan.fault == Fault::short_transfer;
  const std::string where = "fault " + std::to_string(static_cast<int>(plan.fault)) + " errno " +
                            std::to_string(plan.error) + " at call " + std::to_string(plan.index) +
                            around(kernel, plan.index);
  EXPECT_TRUE(attempt.succeeded || !harmless) << where;
  expect_good(disk, sweep.shape, attempt, where);
  return kernel.reached();
}

// The faults take turns: each call fails in one of their ways. The turns shift by one in each
// round, so that calls in a rhythm of four meet all faults.
TEST_P(CrashPoint, AFailedCallCostsAtMostThisCheckpoint) {
  const Sweep& sweep = GetParam();
  if (sweep.power_loss) return;  // the same calls as without
  std::uint64_t call = 0;
  for (bool reached = true; reached && !HasFailure(); ++call) {
    FaultPlan plan = kFaults[(call + call / std::size(kFaults)) % std::size(kFaults)];
    plan.index = call;
    reached = survives(plan, sweep);
  }
  EXPECT_TRUE(call > 30 || HasFailure()) << "the sweep did not sweep";
}

TEST_P(CrashPoint, AFailedCallCostsAtMostThisCheckpointHoweverItFails) {
  const Sweep& sweep = GetParam();
  if (sweep.power_loss) return;
  for (FaultPlan plan : kFaults) {
    while (survives(plan, sweep) && !HasFailure()) ++plan.index;
    if (HasFailure()) return;
  }
}

std::vector<Sweep> sweeps() {
  std::vector<Sweep> all;
  for (const int level : {1, 4}) {
    all.push_back({"OneProcessL" + std::to_string(level), one_process(), level, false});
    all.push_back({"OneProcessDiskL" + std::to_string(level), on_disk(one_process()), level, true});
  }
  for (const int level : {2, 3})
    all.push_back({"TwoNodesL" + std::to_string(level), two_nodes(), level, false});
  all.push_back({"TwoNodesDiskL2", on_disk(two_nodes()), 2, true});
  all.push_back({"TwoNodesSharedL4", in_shared_files(two_nodes()), 4, false});
  all.push_back({"TwoNodesSharedDiskL4", in_shared_files(on_disk(two_nodes())), 4, true});
  return all;
}

// Sweeps captures of memory that has whole pages.
std::vector<Sweep> sweeps_of_captures() {
  std::vector<Sweep> all;
  for (const auto& [name, strategy] :
       {std::pair("CopyOnWrite", "copy-on-write"), std::pair("Incremental", "incremental")}) {
    Shape shape = two_nodes();
    shape.elements = 4000;
    shape.config += std::string("[capture]\nstrategy = \"") + strategy + "\"\n";
    for (const int level : {2, 4})
      all.push_back(
          {std::string("TwoNodes") + name + "L" + std::to_string(level), shape, level, false});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(LongCaptures, CrashPoint, ::testing::ValuesIn(sweeps_of_captures()),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(Sweeps, CrashPoint, ::testing::ValuesIn(sweeps()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace diapause::test_support
