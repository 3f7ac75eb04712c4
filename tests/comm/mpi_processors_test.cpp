// On how many processors the ranks of a node run, which says whether a rank that waits may poll.
#include <gtest/gtest.h>
#include <mpi.h>
#include <sched.h>

#include <vector>

#include "comm/mpi/node_memory.hpp"
#include "sys/tasks.hpp"

namespace diapause::comm {
namespace {

void bind_to(std::uint32_t first, std::uint32_t last) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (std::uint32_t processor = first; processor <= last; ++processor) CPU_SET(processor, &set);
  ASSERT_EQ(::sched_setaffinity(0, sizeof set, &set), 0);
}

TEST(MpiProcessors, AreThoseOfAllRanksTogetherHoweverEachIsBound) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  bind_to(0, CPU_SETSIZE - 1);  // to all that there are, wherever the launcher has bound this rank
  const std::vector<std::uint32_t> processors = sys::usable_cpus();
  ASSERT_FALSE(processors.empty());
  const std::uint32_t mine = rank % 2 == 0 ? processors.front() : processors.back();
  bind_to(mine, mine);
  const auto count = processors_of(MPI_COMM_WORLD);
  ASSERT_TRUE(count);
  EXPECT_EQ(*count, processors.size() == 1 ? 1U : 2U);
}

}  // namespace
}  // namespace diapause::comm

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  MPI_Init(&argc, &argv);
  const int status = RUN_ALL_TESTS();
  MPI_Finalize();
  return status;
}
