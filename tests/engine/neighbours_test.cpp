// Which part of a machine its ranks have, however they are bound to processors.
#include "engine/job/neighbours.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "engine/job/context.hpp"
#include "support/thread_comm.hpp"
#include "support/volatile_disk.hpp"
#include "sys/thread.hpp"

namespace diapause::engine {
namespace {

Neighbour bound_to(std::vector<std::uint32_t> cpus, std::uint32_t machine = 0) {
  return {1, machine, std::move(cpus)};
}

TEST(MachineShare, IsAllOfTheProcessorsThatOnlyThisRankMayUse) {
  const std::vector<Neighbour> all = {bound_to({0, 1, 2, 3}), bound_to({4, 5, 6, 7})};
  EXPECT_EQ(share_of(all[0], all).cores, 4U);
  EXPECT_EQ(share_of(all[1], all).cores, 4U);
  EXPECT_EQ(share_of(all[1], all).ranks, 2U);
}

TEST(MachineShare, IsAnEqualPartOfProcessorsThatRanksShare) {
  const std::vector<Neighbour> all(3, bound_to({0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(share_of(all[2], all).cores, 3U);
}

TEST(MachineShare, CountsEachProcessorByHowManyMayUseIt) {
  // Two pairs of ranks, each bound to a socket, and one that may run everywhere.
  const std::vector<Neighbour> all = {bound_to({0, 1, 2, 3}), bound_to({0, 1, 2, 3}),
                                      bound_to({4, 5, 6, 7}), bound_to({4, 5, 6, 7}),
                                      bound_to({0, 1, 2, 3, 4, 5, 6, 7, 8, 9})};
  EXPECT_EQ(share_of(all[0], all).cores, 1U);
  EXPECT_EQ(share_of(all[4], all).cores, 4U);
}

TEST(MachineShare, IsNotLessThanOneProcessor) {
  const std::vector<Neighbour> all(5, bound_to({7}));
  EXPECT_EQ(share_of(all[0], all).cores, 1U);
}

TEST(MachineShare, DoesNotDependOnOtherMachines) {
  const std::vector<Neighbour> all = {bound_to({0, 1}, 0), bound_to({0, 1}, 1)};
  EXPECT_EQ(share_of(all[1], all).cores, 2U);
  EXPECT_EQ(share_of(all[1], all).ranks, 1U);
}

TEST(Neighbours, AreTheRanksOfTheNodeThatCompute) {
  constexpr std::uint32_t kRanks = 6;
  test_support::ThreadJob job(kRanks, kRanks);  // on one machine
  test_support::VolatileDisk disk;
  std::vector<std::thread> ranks;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      Context context{disk, job.comm(rank), {}, {}, {}, {}, "job"};
      context.settings.ranks_per_node = 3;
      context.settings.async.mode = config::AsyncMode::rank;
      auto topology = find_topology(*context.comm, context.settings, "host");
      ASSERT_TRUE(topology);
      context.topology = *topology;
      ASSERT_TRUE(find_neighbours(context));
      EXPECT_EQ(context.neighbours.size(), 2U);
      EXPECT_EQ(context.share.ranks, 4U);
      EXPECT_EQ(context.share.cores, std::max(1U, sys::usable_cores() / 4));
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

}  // namespace
}  // namespace diapause::engine
