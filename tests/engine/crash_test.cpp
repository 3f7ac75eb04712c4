// The crash-point sweep: at every system call of a checkpoint, what comes back is the newest
// published version or the one before, whole, never anything else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>

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

Shape one_node() {
  Shape shape;
  shape.ranks = shape.ranks_per_node = 2;
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

struct Sweep {
  std::string name;
  Shape shape;
  int level;
  bool power_loss;  // false: only the processes die
  // The disk says that it is memory, and more versions are taken, so that the last one gets the
  // directory of another.
  bool in_memory = false;

  std::uint64_t last_version() const { return in_memory ? 6 : 3; }
};

void PrintTo(const Sweep& sweep, std::ostream* out) { *out << sweep.name; }

void take_first_two(VolatileDisk& disk, const Sweep& sweep) {
  if (sweep.in_memory) disk.say_it_is_memory();
  checkpoint_job(disk, sweep.shape, {{1, sweep.level}, {2, sweep.level}});
}

// Versions 1 and 2 exist. Others are taken over a kernel with a fault. Returns the newest of which
// no rank was told that it failed.
std::uint64_t take_others(sys::Kernel& kernel, const Sweep& sweep) {
  std::mutex mutex;
  std::map<std::uint64_t, std::uint32_t> succeeded;
  (void)run_job(kernel, sweep.shape, [&](library::Engine& engine, Program& program, std::uint32_t) {
    for (std::uint64_t version = 3; version <= sweep.last_version(); ++version) {
      program.compute(version);
      library::CheckpointInfo info;
      const Status done = take(engine, version, sweep.level, info);
      const std::lock_guard lock(mutex);
      if (done) ++succeeded[version];
    }
  });
  std::uint64_t newest = 2;
  for (const auto& [version, ranks] : succeeded) {
    if (ranks == sweep.shape.ranks) newest = version;
  }
  return newest;
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

void expect_good(sys::Kernel& kernel, const Sweep& sweep, std::uint64_t newest,
                 const std::string& where) {
  const Restarted restarted = restart_job(kernel, sweep.shape);
  ASSERT_TRUE(restarted.status) << where << ": " << restarted.status.error().message;
  EXPECT_TRUE(restarted.intact) << where;
  EXPECT_THAT(restarted.version,
              testing::AllOf(testing::Ge(newest), testing::Le(sweep.last_version())))
      << where;
  // The job goes on, too: the leftovers are in nobody's way.
  checkpoint_job(kernel, sweep.shape, {{7, 1}});
  EXPECT_EQ(restart_job(kernel, sweep.shape).version, 7u) << where;
}

class CrashPoint : public ::testing::TestWithParam<Sweep> {};

TEST_P(CrashPoint, StoppingAtAnyCallLeavesAGoodVersion) {
  const Sweep& sweep = GetParam();
  constexpr PowerLoss kModes[] = {PowerLoss::lose_all, PowerLoss::keep_names_lose_data,
                                  PowerLoss::keep_data_lose_names, PowerLoss::random};
  for (std::uint64_t call = 0;; ++call) {
    VolatileDisk disk;
    take_first_two(disk, sweep);
    FaultKernel kernel(disk, {Fault::stop, call, Call::any, EIO});
    kernel.record_trace("");
    const std::uint64_t newest = take_others(kernel, sweep);
    const bool done = !kernel.reached();
    if (sweep.power_loss) disk.power_loss(kModes[call % 4], call);
    expect_good(disk, sweep, newest,
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

// Takes the other versions with this fault, and restarts. Returns whether the call that fails was
// made.
bool survives(const FaultPlan& plan, const Sweep& sweep) {
  VolatileDisk disk;
  take_first_two(disk, sweep);
  FaultKernel kernel(disk, plan);
  kernel.record_trace("");
  const std::uint64_t newest = take_others(kernel, sweep);
  const bool harmless = plan.fault == Fault::interrupt_once || plan.fault == Fault::short_transfer;
  const std::string where = "fault " + std::to_string(static_cast<int>(plan.fault)) + " errno " +
                            std::to_string(plan.error) + " at call " + std::to_string(plan.index) +
                            around(kernel, plan.index);
  EXPECT_TRUE(newest == sweep.last_version() || !harmless) << where;
  expect_good(disk, sweep, newest, where);
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
  all.push_back({"OneNodeMemoryL1", one_node(), 1, false, true});
  all.push_back({"TwoNodesMemoryL2", two_nodes(), 2, false, true});
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
