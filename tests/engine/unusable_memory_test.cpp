// Memory that the program has protected and that nobody can read or write is a status on all ranks,
// not the end of one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "engine/cluster.hpp"

namespace diapause::test_support {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t kBytes = 3 * kPageBytes;

class Pages {
 public:
  Pages()
      : data_(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
  }
  ~Pages() { ::munmap(data_, kBytes); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(data_); }
  // Changes the rights of the page in the middle.
  void allow(int rights) const {
    ASSERT_EQ(::mprotect(data() + kPageBytes, kPageBytes, rights), 0);
  }
  void allow_all(int rights) const { ASSERT_EQ(::mprotect(data(), kBytes, rights), 0); }

 private:
  void* data_;
};

library::ProtectedRegion region_of(const Pages& pages) {
  format::Region region;
  region.name = "pages";
  region.count = kBytes;
  return {region, pages.data()};
}

Shape two_ranks() {
  Shape shape;
  shape.ranks = 2;
  return shape;
}

TEST(UnusableMemory, CannotBeProtectedWhereItCannotBeRead) {
  VolatileDisk disk;
  ASSERT_TRUE(run_job(disk, two_ranks(), [](library::Engine& engine, Program&, std::uint32_t) {
    const Pages pages;
    pages.allow_all(PROT_NONE);
    const Status refused = engine.protect(region_of(pages));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::argument);
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr("'pages' cannot be read"), HasSubstr("PROT_NONE")));
    pages.allow_all(PROT_READ);
    EXPECT_TRUE(engine.protect(region_of(pages))) << "a checkpoint only reads";
    EXPECT_TRUE(engine.unprotect("pages"));
  }));
}

TEST(UnusableMemory, FailsTheCheckpointOnAllRanksAndTheNextOneGoesWell) {
  VolatileDisk disk;
  ASSERT_TRUE(
      run_job(disk, two_ranks(), [](library::Engine& engine, Program& program, std::uint32_t rank) {
        const Pages pages;
        ASSERT_TRUE(engine.protect(region_of(pages)));
        program.compute(1);
        if (rank == 1) pages.allow(PROT_NONE);
        library::CheckpointInfo info;
        const Status refused = take(engine, 1, 1, info);
        ASSERT_FALSE(refused);
        EXPECT_THAT(refused.error().message,
                    AllOf(HasSubstr("rank 1"), HasSubstr("'pages' cannot be read")));
        pages.allow(PROT_READ | PROT_WRITE);
        program.compute(2);
        const Status taken = take(engine, 2, 1, info);
        EXPECT_TRUE(taken) << taken.error().message;
        EXPECT_TRUE(engine.unprotect("pages"));
      }));
}

TEST(UnusableMemory, ThatWasUnmappedFailsTheCheckpoint) {
  VolatileDisk disk;
  ASSERT_TRUE(run_job(disk, two_ranks(), [](library::Engine& engine, Program&, std::uint32_t) {
    const Pages pages;
    ASSERT_TRUE(engine.protect(region_of(pages)));
    ASSERT_EQ(::munmap(pages.data() + kPageBytes, kPageBytes), 0);
    library::CheckpointInfo info;
    const Status refused = take(engine, 1, 1, info);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr("'pages' cannot be read"), HasSubstr("no memory at 0x")));
    EXPECT_TRUE(engine.unprotect("pages"));
  }));
}

TEST(UnusableMemory, IsNotRestoredIntoWhereItIsReadOnly) {
  VolatileDisk disk;
  const auto body = [](bool restarts) {
    return [restarts](library::Engine& engine, Program& program, std::uint32_t) {
      const Pages pages;
      ASSERT_TRUE(engine.protect(region_of(pages)));
      if (!restarts) {
        library::CheckpointInfo info;
        program.compute(1);
        EXPECT_TRUE(take(engine, 1, 1, info));
        return;
      }
      pages.allow(PROT_READ);
      library::RestartInfo info;
      ASSERT_TRUE(engine.restart_begin(library::Engine::kNewest, info));
      const Status refused = engine.restore({});
      ASSERT_FALSE(refused);
      EXPECT_THAT(refused.error().message,
                  AllOf(HasSubstr("'pages' cannot be restored"), HasSubstr("read-only")));
      EXPECT_TRUE(program.is_scrambled()) << "nothing is written on any rank";
      pages.allow(PROT_READ | PROT_WRITE);
      EXPECT_TRUE(engine.restore({}));
      EXPECT_TRUE(program.holds(1));
      EXPECT_TRUE(engine.restart_end());
    };
  };
  ASSERT_TRUE(run_job(disk, two_ranks(), body(false)));
  ASSERT_TRUE(run_job(disk, two_ranks(), body(true)));
}

}  // namespace
}  // namespace diapause::test_support
