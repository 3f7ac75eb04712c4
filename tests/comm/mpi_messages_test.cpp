// The exchange of values over the MPI that this was built with. Ranks of a node exchange small ones
// through memory that they share, and large ones by messages.
#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <thread>

#include "comm/mpi/mpi_comm.hpp"

namespace diapause::comm {
namespace {

class MpiMessages : public testing::Test {
 protected:
  void SetUp() override {
    auto comm = make_mpi_comm(MPI_COMM_WORLD);
    ASSERT_TRUE(comm) << comm.error().message;
    comm_ = std::move(*comm);
  }
  std::uint64_t rank() const { return comm_->rank(); }
  std::uint64_t last() const { return comm_->size() - 1; }
  // One rank is later than the others, and each in turn.
  void come_late(std::uint64_t round) const {
    if (round % 100 == rank()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }

  std::unique_ptr<Comm> comm_;
};

TEST_F(MpiMessages, GiveAllTheLeastAndTheGreatest) {
  for (std::uint64_t round = 0; round < 300; ++round) {
    come_late(round);
    std::uint64_t values[] = {round + rank(), UINT64_MAX - rank(), 7};
    ASSERT_TRUE(comm_->all_min(values));
    EXPECT_EQ(values[0], round);
    EXPECT_EQ(values[1], UINT64_MAX - last());
    EXPECT_EQ(values[2], 7U);
    EXPECT_EQ(comm_->all_max(round + rank()), round + last());
  }
}

TEST_F(MpiMessages, PassOnWhatOneRankHas) {
  for (std::uint64_t round = 0; round < 300; ++round) {
    come_late(round);
    for (const std::uint32_t root : {0U, comm_->size() - 1}) {
      // Some of these go by memory and some by messages.
      std::vector<std::uint64_t> data(round % 3 == 0 ? 1000 : 4, rank() == root ? round : 0);
      ASSERT_TRUE(comm_->broadcast(std::as_writable_bytes(std::span(data)), root));
      EXPECT_EQ(data.front(), round);
      EXPECT_EQ(data.back(), round);
    }
  }
}

TEST_F(MpiMessages, GatherTextsOfAnyLength) {
  for (std::uint64_t round = 0; round < 300; ++round) {
    come_late(round);
    const std::size_t more = round % 7 == 0 ? 1000 * rank() : rank();
    const auto all = comm_->all_gather(ByteVector(more, static_cast<std::byte>(round)));
    ASSERT_TRUE(all) << all.error().message;
    ASSERT_EQ(all->size(), comm_->size());
    for (std::size_t other = 0; other < all->size(); ++other) {
      EXPECT_EQ(all->at(other),
                ByteVector(round % 7 == 0 ? 1000 * other : other, static_cast<std::byte>(round)));
    }
  }
}

// MPI moves large messages only in calls of both ranks.
TEST_F(MpiMessages, LetTheProgramsOwnOnesArriveMeanwhile) {
  constexpr int kBytes = 32 << 20;
  std::vector<char> data(kBytes, static_cast<char>(rank()));
  if (rank() == 0) {
    MPI_Request sent = MPI_REQUEST_NULL;
    MPI_Isend(data.data(), kBytes, MPI_BYTE, static_cast<int>(last()), 0, MPI_COMM_WORLD, &sent);
    EXPECT_TRUE(comm_->barrier());
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    return;
  }
  if (rank() == last())
    MPI_Recv(data.data(), kBytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT_TRUE(comm_->barrier());
  EXPECT_EQ(data.back(), rank() == last() ? 0 : static_cast<char>(rank()));
}

TEST_F(MpiMessages, WorkInPartsOfTheRanks) {
  const bool is_in = rank() != 1;
  auto part = comm_->split(is_in ? std::optional(Comm::Part{0, Waiting::alert}) : std::nullopt);
  ASSERT_TRUE(part) << part.error().message;
  ASSERT_EQ(*part != nullptr, is_in);
  if (is_in) {
    EXPECT_EQ((*part)->all_max(rank()), last());
  }
  EXPECT_TRUE(comm_->barrier());
}

}  // namespace
}  // namespace diapause::comm

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  MPI_Finalize();
  return result;
}
