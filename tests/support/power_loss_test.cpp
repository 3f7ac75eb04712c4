// A process that dies at any call, and then the power goes: what was published stays, and nothing
// is half there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "support/fault_kernel.hpp"
#include "support/file_helpers.hpp"
#include "support/volatile_disk.hpp"

namespace diapause::test_support {
namespace {

using sys::Directory;

constexpr const char* kRoot = "/scratch/job";
const std::string kOldText(5000, 'o');
const std::string kNewText(9000, 'n');

struct Outcome {
  PowerLoss mode;
  std::uint64_t seed;
};

std::vector<Outcome> outcomes() {
  std::vector<Outcome> all = {{PowerLoss::lose_all, 0},
                              {PowerLoss::keep_names_lose_data, 0},
                              {PowerLoss::keep_data_lose_names, 0}};
  for (std::uint64_t seed = 0; seed < 12; ++seed) all.push_back({PowerLoss::random, seed});
  return all;
}

using Publisher = std::function<Status(const Directory& directory)>;

// Returns how often in the whole sweep a reader found something else than the old text or the new
// one; where the publisher had said success, only the new one is right.
unsigned broken_promises(const Publisher& publisher) {
  unsigned broken = 0;
  for (const Outcome& outcome : outcomes()) {
    bool reached = true;
    for (std::uint64_t index = 0; reached; ++index) {
      VolatileDisk disk;
      EXPECT_TRUE(publish(*Directory::make_private(disk, kRoot), "a", kOldText));
      FaultKernel dying(disk, {Fault::stop, index});
      const auto directory = Directory::open_private(dying, kRoot);
      const bool promised = directory && publisher(*directory);
      disk.power_loss(outcome.mode, outcome.seed);
      const auto left = read_text(*Directory::open_private(disk, kRoot), "a");
      broken += left != kNewText && (promised || left != kOldText);
      reached = dying.reached();
    }
  }
  return broken;
}

TEST(PowerLossAtAnyCall, LeavesTheOldOrTheNewFileWhole) {
  EXPECT_EQ(
      broken_promises([](const Directory& directory) { return publish(directory, "a", kNewText); }),
      0U);
}

TEST(PowerLossAtAnyCall, FindsOutAPublisherThatWritesUnderTheFinalName) {
  EXPECT_GT(broken_promises(
                [](const Directory& directory) { return write_text(directory, "a", kNewText); }),
            0U);
}

TEST(PowerLossAtAnyCall, FindsOutAPublisherThatDoesNotSyncTheFile) {
  EXPECT_GT(broken_promises([](const Directory& directory) -> Status {
              DIAPAUSE_TRY_ASSIGN(const sys::File file, directory.create_file("a.tmp"));
              DIAPAUSE_TRY(file.write_all(bytes(kNewText), 0));
              DIAPAUSE_TRY(directory.rename("a.tmp", directory, "a"));
              return directory.sync();
            }),
            0U);
}

TEST(PowerLossAtAnyCall, FindsOutAPublisherThatDoesNotSyncTheDirectory) {
  EXPECT_GT(broken_promises([](const Directory& directory) -> Status {
              DIAPAUSE_TRY(write_text(directory, "a.tmp", kNewText));
              return directory.rename("a.tmp", directory, "a");
            }),
            0U);
}

// One process dies while it makes the directories, the next one finds some of them and goes on.
TEST(PowerLossAtAnyCall, LeavesWhatIsPublishedInDirectoriesThatADeadProcessBegan) {
  bool reached = true;
  for (std::uint64_t index = 0; reached; ++index) {
    VolatileDisk disk;
    FaultKernel dying(disk, {Fault::stop, index});
    const auto begin = [](sys::Kernel& kernel) -> Result<Directory> {
      DIAPAUSE_TRY_ASSIGN(const Directory root, Directory::make_private(kernel, kRoot));
      return root.make_child("v1");
    };
    static_cast<void>(begin(dying));
    const auto version = begin(disk);
    ASSERT_TRUE(version) << message_of(version);
    ASSERT_TRUE(publish(*version, "a", kNewText));
    disk.power_loss(PowerLoss::lose_all);
    EXPECT_TRUE(disk.read_content("/scratch/job/v1/a")) << "died at call " << index;
    reached = dying.reached();
  }
}

}  // namespace
}  // namespace diapause::test_support
