#include "comm/meeting_place.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace diapause::comm {
namespace {

using For = MeetingPlace::For;
constexpr double kNap_s = 0.05;

// Waits as a rank does.
template <class IsSo>
void await(MeetingPlace& place, For what, IsSo is_so) {
  while (true) {
    const std::uint32_t seen = place.word(what);
    if (is_so()) return;
    place.sleep(what, seen, kNap_s);
  }
}

// Ranks as threads over the same memory.
void run(std::uint32_t ranks, const std::function<void(MeetingPlace&)>& of_rank) {
  alignas(64) static std::array<std::byte, 1 << 16> memory;
  ASSERT_LE(MeetingPlace::bytes(ranks), memory.size());
  memory.fill({});
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      MeetingPlace place(memory.data(), rank, ranks);
      of_rank(place);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void meet(MeetingPlace& place, ByteView mine, std::size_t values) {
  if (place.arrive(mine, values)) place.release(true);
  await(place, For::end, [&] { return place.is_over(); });
}

TEST(MeetingPlaceTest, GivesAllTheLeastOfTheirValuesEachTime) {
  run(5, [](MeetingPlace& place) {
    for (std::uint64_t round = 1; round < 2000; ++round) {
      const std::uint64_t mine[] = {round + place.place(), 100 * round - place.place()};
      meet(place, std::as_bytes(std::span(mine)), 2);
      ASSERT_THAT(place.result(2), testing::ElementsAre(round, 100 * round - 4));
    }
  });
}

TEST(MeetingPlaceTest, ShowsWhatEachHasLeftUntilItArrivesAgain) {
  run(4, [](MeetingPlace& place) {
    for (std::uint64_t round = 0; round < 2000; ++round) {
      const std::string mine(place.place() + 1, static_cast<char>('a' + round % 26));
      meet(place, as_byte_view(mine), 0);
      for (std::uint32_t other = 0; other < place.processes(); ++other) {
        const auto left = place.left_by(other);
        ASSERT_TRUE(left);
        ASSERT_THAT(*left, testing::SizeIs(other + 1));
        ASSERT_THAT(*left, testing::Each(static_cast<std::byte>(mine.front())));
      }
    }
  });
}

TEST(MeetingPlaceTest, TellsAllThatOneHasLeftTooMuch) {
  run(3, [](MeetingPlace& place) {
    const ByteVector mine(place.place() == 1 ? MeetingPlace::kMostBytes + 1 : 1);
    meet(place, mine, 0);
    EXPECT_TRUE(place.left_by(0));
    EXPECT_FALSE(place.left_by(1));
  });
}

TEST(MeetingPlaceTest, LetsAnotherThanTheLastEndTheMeetingOnceAllAreThere) {
  run(4, [](MeetingPlace& place) {
    for (std::uint64_t round = 1; round < 500; ++round) {
      const std::uint64_t mine = round * 10 + place.place();
      place.arrive(as_byte_view(mine), 1);
      if (place.place() == 2) {
        await(place, For::all_here, [&] { return place.are_all_here(); });
        place.result(1)[0] += 1000;
        place.release(round % 2 == 0);
      }
      await(place, For::end, [&] { return place.is_over(); });
      ASSERT_EQ(place.result(1)[0], round * 10 + 1000);
      ASSERT_EQ(place.has_succeeded(), round % 2 == 0);
    }
  });
}

TEST(MeetingPlaceTest, PassesAnnouncementsOnInTheirOrder) {
  run(5, [](MeetingPlace& place) {
    for (std::uint64_t number = 0; number < 3000; ++number) {
      if (place.needs_meeting()) meet(place, {}, 0);
      std::uint64_t heard = number * number;
      const MutableBytes bytes = std::as_writable_bytes(std::span(&heard, 1));
      if (place.place() == 0) {
        place.announce(bytes);
      } else {
        heard = 0;
        await(place, For::announcement, [&] { return place.hear(bytes); });
      }
      ASSERT_EQ(heard, number * number);
    }
  });
}

TEST(MeetingPlaceTest, DoesNotHoldUpTheOneWhoAnnounces) {
  std::atomic<int> announced = 0;
  run(2, [&](MeetingPlace& place) {
    meet(place, {}, 0);
    std::uint64_t number = 7;
    const MutableBytes bytes = std::as_writable_bytes(std::span(&number, 1));
    if (place.place() == 0) {
      for (int i = 0; i < 10; ++i) {
        place.announce(bytes);
        ++announced;
      }
    } else {
      while (announced != 10) std::this_thread::yield();
      for (int i = 0; i < 10; ++i) EXPECT_TRUE(place.hear(bytes));
      EXPECT_FALSE(place.hear(bytes));
    }
  });
}

}  // namespace
}  // namespace diapause::comm
