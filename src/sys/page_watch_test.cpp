// Tests write protection and its relatives on memory of this very process.
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <csignal>

#include "sys/mappings.hpp"
#include "sys/page_scan.hpp"
#include "sys/thread.hpp"
#include "sys/userfault.hpp"

namespace diapause::sys {
namespace {

// Has anonymous pages, all of them there.
class Pages {
 public:
  explicit Pages(std::size_t count, int sharing = MAP_PRIVATE) : bytes_(count * page_bytes()) {
    void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                          sharing | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    data_ = static_cast<std::byte*>(memory);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { ::munmap(data_, bytes_); }

  MutableBytes bytes() const { return {data_, bytes_}; }
  PageRange range() const { return page(0, bytes_ / page_bytes()); }
  PageRange page(std::size_t first, std::size_t count = 1) const {
    const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(data_) + first * page_bytes();
    return {begin, begin + count * page_bytes()};
  }

 private:
  std::byte* data_;
  std::size_t bytes_;
};

TEST(WholePages, AreThoseThatLieInsideFromTheFirstToTheLastByte) {
  const Pages pages(3);
  const MutableBytes all = pages.bytes();
  EXPECT_EQ(whole_pages_in(all), pages.range());
  EXPECT_EQ(whole_pages_in(all.subspan(1)), pages.page(1, 2));
  EXPECT_EQ(whole_pages_in(all.first(all.size() - 1)), pages.page(0, 2));
  EXPECT_TRUE(whole_pages_in(all.subspan(1, page_bytes())).is_empty());
  EXPECT_TRUE(whole_pages_in({}).is_empty());
}

TEST(PagesOf, AreThoseThatHoldAnyOfTheBytes) {
  const Pages pages(3);
  const MutableBytes all = pages.bytes();
  EXPECT_EQ(pages_of(all), pages.range());
  EXPECT_EQ(pages_of(all.subspan(page_bytes() - 1, 2)), pages.page(0, 2));
  EXPECT_EQ(pages_of(all.subspan(page_bytes(), 1)), pages.page(1));
}

TEST(SurelyReadable, AreNoPagesThatAreProtectedOrMissing) {
  const Pages pages(3);
  if (!are_surely_readable(pages.range())) GTEST_SKIP() << "this kernel does not tell";
  ::mprotect(pages.bytes().data(), page_bytes(), PROT_READ);
  EXPECT_TRUE(are_surely_readable(pages.range()));
  ::mprotect(pages.bytes().data() + page_bytes(), page_bytes(), PROT_NONE);
  EXPECT_FALSE(are_surely_readable(pages.range()));
  EXPECT_TRUE(are_surely_readable(pages.page(2)));
  ::munmap(pages.bytes().data() + 2 * page_bytes(), page_bytes());
  EXPECT_FALSE(are_surely_readable(pages.page(2)));
}

TEST(SurelyWritable, AreNoPagesThatAreProtectedOrMissing) {
  const Pages pages(3);
  if (!are_surely_writable(pages.range())) GTEST_SKIP() << "this kernel does not tell";
  pages.bytes().front() = std::byte{7};
  EXPECT_TRUE(are_surely_writable(pages.page(0)));
  EXPECT_EQ(pages.bytes().front(), std::byte{7});
  ::mprotect(pages.bytes().data() + page_bytes(), page_bytes(), PROT_READ);
  EXPECT_FALSE(are_surely_writable(pages.range()));
  EXPECT_TRUE(are_surely_writable(pages.page(2)));
  ::munmap(pages.bytes().data() + 2 * page_bytes(), page_bytes());
  EXPECT_FALSE(are_surely_writable(pages.page(2)));
}

TEST(MappingsTest, KnowPrivateAnonymousMemory) {
  const Pages pages(3);
  EXPECT_TRUE(Mappings::read()->is_private_anonymous(pages.range()));
  ::mprotect(pages.bytes().data() + page_bytes(), page_bytes(), PROT_READ);
  const auto mappings = Mappings::read();
  EXPECT_TRUE(mappings->is_private_anonymous(pages.page(0)));
  EXPECT_FALSE(mappings->is_private_anonymous(pages.range()));
}

TEST(MappingsTest, TakeNoSharedMemoryAndNoProgramTextForIt) {
  const Pages shared(1, MAP_SHARED);
  const auto text = reinterpret_cast<std::uintptr_t>(&page_bytes) / page_bytes() * page_bytes();
  const auto mappings = Mappings::read();
  EXPECT_FALSE(mappings->is_private_anonymous(shared.range()));
  EXPECT_FALSE(mappings->is_private_anonymous({text, text + page_bytes()}));
}

TEST(ThreadTest, GetsNoSignals) {
  sigset_t mask;
  {
    const auto thread = Thread::start([&] { ::pthread_sigmask(SIG_SETMASK, nullptr, &mask); });
  }
  EXPECT_EQ(::sigismember(&mask, SIGTERM), 1);
  EXPECT_EQ(::sigismember(&mask, SIGUSR1), 1);
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(::sigismember(&mask, SIGTERM), 0);
}

// Reads what a thread is about to write that the kernel holds back; the thread sanitizer sees only
// that both touch it.
#if defined(__clang__)
__attribute__((no_sanitize("thread")))
#endif
std::byte
beside_a_stopped_writer(const std::byte& place) {
  return place;
}

class StoppedWriters : public testing::Test {
 protected:
  void SetUp() override {
    if (!userfault_) GTEST_SKIP() << userfault_.error().message;
    ASSERT_TRUE(userfault_->add(pages_.range()));
  }
  const Pages pages_{4};
  const Result<Userfault> userfault_ = Userfault::open(Userfault::Mode::stop_writers);
};

TEST_F(StoppedWriters, WaitUntilTheirPageIsReleased) {
  ASSERT_TRUE(userfault_->protect(pages_.range()));
  std::atomic<bool> written = false;
  auto writer = Thread::start([&] {
    pages_.bytes()[page_bytes() + 5] = std::byte{7};
    written = true;
  });
  std::array<std::uintptr_t, 4> addresses{};
  ASSERT_EQ(userfault_->wait_for_writers(addresses).value(), 1U);
  EXPECT_GE(addresses[0], pages_.page(1).begin);
  EXPECT_LT(addresses[0], pages_.page(1).end);
  EXPECT_FALSE(written);
  EXPECT_EQ(beside_a_stopped_writer(pages_.bytes()[page_bytes() + 5]), std::byte{0});
  ASSERT_TRUE(userfault_->release(pages_.page(1)));
  while (!written) std::this_thread::yield();
}

TEST_F(StoppedWriters, GoOnWhenTheMemoryIsRemoved) {
  ASSERT_TRUE(userfault_->protect(pages_.range()));
  std::atomic<bool> written = false;
  auto writer = Thread::start([&] {
    pages_.bytes()[0] = std::byte{7};
    written = true;
  });
  std::array<std::uintptr_t, 4> addresses{};
  ASSERT_TRUE(userfault_->wait_for_writers(addresses));
  userfault_->remove(pages_.range());
  while (!written) std::this_thread::yield();
}

TEST_F(StoppedWriters, AreNoLongerWaitedForAfterAnInterrupt) {
  userfault_->interrupt();
  std::array<std::uintptr_t, 4> addresses{};
  EXPECT_EQ(userfault_->wait_for_writers(addresses).value(), 0U);
  EXPECT_EQ(userfault_->wait_for_writers(addresses).value(), 0U);
}

TEST_F(StoppedWriters, AreNotStoppedInMemoryThatIsNotKnown) {
  const Pages other(1);
  EXPECT_EQ(userfault_->protect(other.range()).error().os_errno, ENOENT);
}

class NotedWrites : public testing::Test {
 protected:
  void SetUp() override {
    if (!userfault_) GTEST_SKIP() << userfault_.error().message;
    ASSERT_TRUE(scan_) << scan_.error().message;
    ASSERT_TRUE(userfault_->add(pages_.range()));
    ASSERT_TRUE(scan_->written_and_protect(pages_.range()));
  }
  const Pages pages_{1200};
  const Result<Userfault> userfault_ = Userfault::open(Userfault::Mode::note_writes);
  const Result<PageScan> scan_ = PageScan::open();
};

TEST_F(NotedWrites, AreFoundOnce) {
  pages_.bytes()[3 * page_bytes()] = std::byte{1};
  pages_.bytes()[5 * page_bytes() - 1] = std::byte{1};
  pages_.bytes()[9 * page_bytes()] = std::byte{1};
  EXPECT_THAT(scan_->written_and_protect(pages_.range()).value(),
              testing::ElementsAre(pages_.page(3, 2), pages_.page(9)));
  EXPECT_THAT(scan_->written_and_protect(pages_.range()).value(), testing::IsEmpty());
}

TEST_F(NotedWrites, AreFoundHoweverManyThereAre) {
  for (std::size_t page = 0; page < 1200; page += 2)
    pages_.bytes()[page * page_bytes()] = std::byte{1};
  EXPECT_EQ(scan_->written_and_protect(pages_.range())->size(), 600U);
}

TEST_F(NotedWrites, CannotBeAskedForWhereNobodyWatches) {
  const Pages other(1);
  EXPECT_EQ(scan_->written_and_protect(other.range()).error().os_errno, EPERM);
}

}  // namespace
}  // namespace diapause::sys
