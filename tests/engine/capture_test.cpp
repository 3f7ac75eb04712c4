// Tests how memory leaves a running program, by every strategy. An image holds what the memory held
// at the call.
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "engine/cluster.hpp"
#include "engine/ledger_events.hpp"
#include "sys/userfault.hpp"

namespace diapause::test_support {
namespace {

using testing::HasSubstr;

struct Way {
  const char* mode;
  const char* strategy;
};
void PrintTo(const Way& way, std::ostream* out) { *out << way.mode << '_' << way.strategy; }

Shape shape_of(const Way& way, const std::string& more = "") {
  Shape shape;
  shape.ranks = 2;
  shape.ranks_per_node = 1;
  shape.elements = 300'000;
  shape.config = std::string("[async]\nmode = \"") + way.mode + "\"\n[capture]\nstrategy = \"" +
                 way.strategy + "\"\n" + more;
  return shape;
}

class Capture : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (in_background()) GTEST_SKIP() << "sets its own mode";
  }
  std::vector<nlohmann::json> bills() const { return ledger_events(disk_, "capture"); }
  VolatileDisk disk_;
};

TEST_P(Capture, HoldsWhatTheProgramHadAtTheCallHoweverItGoesOn) {
  const Shape shape = shape_of(GetParam(), "[level1]\nkeep = 12\n");
  ASSERT_TRUE(run_job(disk_, shape, [&](library::Engine& engine, Program& program, std::uint32_t) {
    library::CheckpointInfo info;
    for (std::uint64_t version = 1; version <= 12; ++version) {
      program.compute(version);
      ASSERT_TRUE(engine.checkpoint(version, static_cast<int>(version % 3 + 1), info));
      program.scramble();
    }
  }));
  for (std::uint64_t version = 1; version <= 12; ++version) {
    const Restarted restarted = restart_job(disk_, shape, version);
    ASSERT_TRUE(restarted.status) << restarted.status.error().message;
    EXPECT_TRUE(restarted.intact) << "version " << version;
  }
}

TEST_P(Capture, IsToldInTheLedgerForEveryVersion) {
  ASSERT_TRUE(run_job(disk_, shape_of(GetParam()),
                      [&](library::Engine& engine, Program& program, std::uint32_t) {
                        library::CheckpointInfo info;
                        for (std::uint64_t version = 1; version <= 4; ++version) {
                          program.compute(version);
                          ASSERT_TRUE(engine.checkpoint(version, 1, info));
                        }
                      }));
  const auto lines = bills();
  ASSERT_EQ(lines.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(lines[i]["version"], i + 1);
    std::uint64_t regions = 0;
    for (const auto& way : lines[i]["ways"]) {
      regions += way["regions"].get<std::uint64_t>();
      EXPECT_NE(way["reason"], "");
    }
    EXPECT_EQ(regions, 3U);
  }
}

TEST_P(Capture, OfARegionThatIsUnprotectedAndUnmappedAtOnceIsWhole) {
  constexpr std::size_t kBytes = 8 * kMiB;
  const Shape shape = shape_of(GetParam());
  const auto describe = [] {
    format::Region region;
    region.name = "passing";
    region.element_bytes = 1;
    region.type = format::ElementType::uint8;
    region.count = kBytes;
    return region;
  };
  const auto map = [] {
    void* memory =
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return static_cast<std::byte*>(memory);
  };
  ASSERT_TRUE(run_job(disk_, shape, [&](library::Engine& engine, Program& program, std::uint32_t) {
    std::byte* const memory = map();
    std::fill_n(memory, kBytes, std::byte{0x5a});
    ASSERT_TRUE(engine.protect({describe(), memory}));
    program.compute(1);
    library::CheckpointInfo info;
    EXPECT_TRUE(engine.checkpoint(1, 1, info));
    EXPECT_TRUE(engine.unprotect("passing"));
    ::munmap(memory, kBytes);
  }));
  std::atomic<int> whole = 0;
  ASSERT_TRUE(run_job(disk_, shape, [&](library::Engine& engine, Program&, std::uint32_t) {
    std::vector<std::byte> memory(kBytes);
    ASSERT_TRUE(engine.protect({describe(), memory.data()}));
    library::RestartInfo info;
    ASSERT_TRUE(engine.restart_begin(library::Engine::kNewest, info));
    EXPECT_TRUE(engine.restore({}));
    EXPECT_TRUE(engine.restart_end());
    whole +=
        std::ranges::all_of(memory, [](std::byte byte) { return byte == std::byte{0x5a}; }) ? 1 : 0;
    EXPECT_TRUE(engine.unprotect("passing"));
  }));
  EXPECT_EQ(whole, 2);
}

INSTANTIATE_TEST_SUITE_P(Ways, Capture,
                         testing::Values(Way{"off", "auto"}, Way{"off", "incremental"},
                                         Way{"thread", "auto"}, Way{"thread", "copy"},
                                         Way{"thread", "copy-on-write"},
                                         Way{"thread", "incremental"}),
                         [](const auto& tested) {
                           std::string name =
                               std::string(tested.param.mode) + "_" + tested.param.strategy;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// Captures with copy-on-write in the background.
class BehindTheProgram : public Capture {
 protected:
  void SetUp() override {
    Capture::SetUp();
    if (!sys::Userfault::open(sys::Userfault::Mode::stop_writers))
      GTEST_SKIP() << "this machine does not stop writers";
  }
  const Shape shape_ = shape_of({"thread", "copy-on-write"});
};

TEST_F(BehindTheProgram, CopiesWithoutHoldingItUp) {
  ASSERT_TRUE(run_job(disk_, shape_, [&](library::Engine& engine, Program& program, std::uint32_t) {
    program.compute(1);
    library::CheckpointInfo info;
    EXPECT_TRUE(engine.checkpoint(1, 1, info));
    EXPECT_TRUE(engine.wait(1, 0, 60));
    EXPECT_TRUE(engine.poll(1)->captured);
  }));
  const auto lines = bills();
  ASSERT_EQ(lines.size(), 1U);
  const auto& ways = lines[0]["ways"];
  const auto found =
      std::ranges::find_if(ways, [](const auto& way) { return way["method"] == "copy-on-write"; });
  ASSERT_NE(found, ways.end());
  EXPECT_GT((*found)["bytes_copied_behind"], (*found)["bytes_copied_in_call"]);
}

TEST_F(BehindTheProgram, MemoryThatGoesWhileItIsCapturedCostsThatVersionAndNoOther) {
  constexpr std::size_t kBytes = 64 * kMiB;
  ASSERT_TRUE(
      run_job(disk_, shape_, [&](library::Engine& engine, Program& program, std::uint32_t rank) {
        library::CheckpointInfo info;
        program.compute(1);
        EXPECT_TRUE(engine.checkpoint(1, 1, info));
        format::Region region;
        region.name = "lost";
        region.element_bytes = 1;
        region.type = format::ElementType::uint8;
        region.count = kBytes;
        void* memory =
            ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        std::memset(memory, 1, kBytes);
        EXPECT_TRUE(engine.wait(1, 1, 60));
        ASSERT_TRUE(engine.protect({region, static_cast<std::byte*>(memory)}));
        program.compute(2);
        EXPECT_TRUE(engine.checkpoint(2, 1, info));
        if (rank == 0) ::munmap(memory, kBytes);
        const Status reached = engine.wait(2, 1, 60);
        ASSERT_FALSE(reached);
        EXPECT_THAT(reached.error().message, HasSubstr("lost was unmapped"));
        EXPECT_TRUE(engine.unprotect("lost"));
        if (rank != 0) ::munmap(memory, kBytes);
        program.compute(3);
        EXPECT_TRUE(engine.checkpoint(3, 1, info));
        EXPECT_TRUE(engine.wait(3, 1, 60));
      }));
  EXPECT_EQ(restart_job(disk_, shape_).version, 3U);
  EXPECT_TRUE(restart_job(disk_, shape_, 1).intact);
}

TEST_F(BehindTheProgram, ARegionDeclaredStableIsCopiedWithoutProtection) {
  ASSERT_TRUE(run_job(disk_, shape_, [&](library::Engine& engine, Program& program, std::uint32_t) {
    EXPECT_TRUE(engine.declare("field", capture::Declaration::stable));
    EXPECT_EQ(engine.declare("fields", capture::Declaration::stable).error().code, Code::not_found);
    library::CheckpointInfo info;
    for (std::uint64_t version = 1; version <= 3; ++version) {
      program.compute(version);
      EXPECT_TRUE(engine.checkpoint(version, 1, info));
      EXPECT_TRUE(engine.wait(version, 0, 60));
    }
  }));
  EXPECT_TRUE(restart_job(disk_, shape_).intact);
  EXPECT_THAT(bills().back().dump(), HasSubstr("declared stable"));
}

TEST_F(BehindTheProgram, ARegionDeclaredConstantIsNotCopiedAgainIntoASlotThatHoldsIt) {
  const Shape shape = shape_of({"thread", "copy"}, "[level1]\nkeep = 1\n");
  ASSERT_TRUE(run_job(disk_, shape, [&](library::Engine& engine, Program& program, std::uint32_t) {
    EXPECT_TRUE(engine.declare("field", capture::Declaration::constant));
    program.compute(7);
    library::CheckpointInfo info;
    for (std::uint64_t version = 1; version <= 6; ++version) {
      EXPECT_TRUE(engine.checkpoint(version, 1, info));
      // When level 1 holds, the slot of the version before is not free yet.
      while (engine.poll(version)->in_flight)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }));
  EXPECT_THAT(bills().back().dump(), HasSubstr("declared constant, and the slot holds it"));
}

}  // namespace
}  // namespace diapause::test_support
