#include "sys/thread_pool.hpp"

#include <gmock/gmock.h>

#include <set>
#include <thread>

namespace diapause::sys {
namespace {

TEST(ThreadPoolTest, DoesEveryPieceOnceInEveryRound) {
  for (const unsigned size : {1U, 2U, 5U}) {
    ThreadPool pool(size);
    for (std::uint64_t pieces = 0; pieces < 100; ++pieces) {
      std::vector<std::atomic<int>> done(pieces);
      pool.run(pieces, [&](std::uint64_t i) { ++done[i]; });
      for (const auto& count : done) ASSERT_EQ(count, 1);
    }
  }
}

TEST(ThreadPoolTest, WorksInAllItsThreadsAtOnce) {
  ThreadPool pool(3);
  std::atomic<int> present = 0;
  // With fewer than three threads this would never end.
  pool.run(3, [&](std::uint64_t) {
    ++present;
    while (present < 3) std::this_thread::yield();
  });
  EXPECT_EQ(present, 3);
}

TEST(ThreadPoolTest, StartsNoThreadWithoutNeed) {
  ThreadPool pool(8);
  std::set<std::thread::id> threads;
  pool.run(1, [&](std::uint64_t) { threads.insert(std::this_thread::get_id()); });
  EXPECT_THAT(threads, testing::ElementsAre(std::this_thread::get_id()));
}

}  // namespace
}  // namespace diapause::sys
