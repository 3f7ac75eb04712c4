// Programs with a region for every object they have.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/cluster.hpp"

namespace diapause::test_support {
namespace {

constexpr std::size_t kRegions = 100'000;

struct alignas(64) Object {
  std::uint64_t value = 0;
};

// 64 bytes a region; those of odd numbers are no longer protected.
class Objects {
 public:
  void protect(library::Engine& engine) {
    for (std::size_t i = 0; i < kRegions; ++i) {
      library::ProtectedRegion region;
      region.description.name = name(i);
      region.description.element_bytes = sizeof values_[i];
      region.description.count = 1;
      region.data = reinterpret_cast<std::byte*>(&values_[i]);
      ASSERT_TRUE(engine.protect(std::move(region)));
    }
    for (std::size_t i = 1; i < kRegions; i += 2) ASSERT_TRUE(engine.unprotect(name(i)));
  }
  static std::string name(std::size_t i) { return "object" + std::to_string(i); }
  std::uint64_t& value(std::size_t i) { return values_[i].value; }

 private:
  std::vector<Object> values_ = std::vector<Object>(kRegions);
};

TEST(ManyRegions, ComeBackEachToItsPlace) {
  VolatileDisk disk;
  Shape shape;
  shape.ranks = 1;
  shape.ranks_per_node = 1;
  library::CheckpointInfo info;
  ASSERT_TRUE(run_job(disk, shape, [&](library::Engine& engine, Program&, std::uint32_t) {
    Objects objects;
    objects.protect(engine);
    for (std::size_t i = 0; i < kRegions; ++i) objects.value(i) = i + 1;
    for (std::uint64_t version = 1; version <= 3; ++version)
      ASSERT_TRUE(engine.checkpoint(version, 1, info));
  }));
  ASSERT_TRUE(run_job(disk, shape, [&](library::Engine& engine, Program&, std::uint32_t) {
    Objects objects;
    objects.protect(engine);
    library::RestartInfo restart;
    ASSERT_TRUE(engine.restart_begin(library::Engine::kNewest, restart));
    ASSERT_TRUE(engine.restore({Objects::name(2), Objects::name(4)}));
    EXPECT_EQ(objects.value(2), 3u);
    EXPECT_EQ(objects.value(6), 0u);
    ASSERT_TRUE(engine.restore({}));
    ASSERT_TRUE(engine.restart_end());
    std::size_t right = 0;
    for (std::size_t i = 0; i < kRegions; ++i)
      right += objects.value(i) == (i % 2 == 0 ? i + 1 : 0) ? 1 : 0;
    EXPECT_EQ(right, kRegions);
  }));
}

}  // namespace
}  // namespace diapause::test_support
