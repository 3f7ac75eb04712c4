// Tests which job a directory belongs to, whatever paths lead to it and whatever the machines are
// called.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "engine/cluster.hpp"
#include "store/names.hpp"
#include "sys/file.hpp"

namespace diapause::test_support {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// Collects what the ranks of a job log.
struct Said {
  std::mutex mutex;
  std::string text;
  LogSink sink() {
    return [this](Severity, const std::string& line) {
      const std::lock_guard lock(mutex);
      text += line + "\n";
    };
  }
};

Shape with_global(const std::string& path) {
  Shape shape;
  shape.ranks = 4;
  shape.config = "[global]\npath = \"" + path + "\"\n";
  return shape;
}

void expect_goes_on(VolatileDisk& disk, const Shape& shape, std::uint64_t version) {
  const Restarted restarted = restart_job(disk, shape);
  ASSERT_TRUE(restarted.status) << restarted.status.error().message;
  EXPECT_EQ(restarted.version, version);
  EXPECT_TRUE(restarted.intact);
}

// Renames as `mv` does.
void rename_on(VolatileDisk& disk, const std::string& from, const std::string& to) {
  ASSERT_EQ(disk.renameat(-100, from.c_str(), -100, to.c_str()), 0);
}

// Copies as `cp -r` does.
void copy_on(VolatileDisk& disk, const std::string& from, const std::string& to) {
  for (const std::string& path : disk.paths()) {
    if (!path.starts_with(from + "/")) continue;
    const std::string target = to + path.substr(from.size());
    if (path.ends_with('/')) {
      ASSERT_TRUE(sys::Directory::make_private(disk, target));
      continue;
    }
    const std::size_t slash = target.find_last_of('/');
    const auto folder = sys::Directory::make_private(disk, target.substr(0, slash));
    ASSERT_TRUE(folder);
    const auto file = folder->create_file(target.substr(slash + 1));
    ASSERT_TRUE(file && file->write_all(*disk.read_content(path), 0) && file->sync() &&
                folder->sync());
  }
}

std::vector<std::string> job_directories(const VolatileDisk& disk, const std::string& root) {
  std::vector<std::string> names;
  for (const std::string& path : disk.paths()) {
    if (!path.starts_with(root + "/") || !path.ends_with('/') || path.size() < root.size() + 3)
      continue;
    const std::string name = path.substr(root.size() + 1, path.size() - root.size() - 2);
    if (name.find('/') == name.npos) names.push_back(name);
  }
  return names;
}

TEST(JobIdentity, IsTheSameForEverySpellingOfThePath) {
  VolatileDisk disk;
  checkpoint_job(disk, with_global("/home/job/g"), {{7, 1}});
  for (const char* spelling : {"g", "g/", "./g", "/home//job/g", "/home/job/./g/"}) {
    expect_goes_on(disk, with_global(spelling), 7);
  }
}

TEST(JobIdentity, MovesWithItsDirectory) {
  VolatileDisk disk;
  checkpoint_job(disk, with_global("/home/job/g"), {{7, 4}, {8, 1}});
  rename_on(disk, "/home/job/g", "/home/job/moved");
  Shape shape = with_global("/home/job/moved");
  Said said;
  shape.log = said.sink();
  expect_goes_on(disk, shape, 8);
  EXPECT_THAT(said.text, HasSubstr("has moved from /home/job/g to /home/job/moved"));
  said.text.clear();
  expect_goes_on(disk, shape, 8);
  EXPECT_EQ(said.text.find("moved from"), std::string::npos) << said.text;
}

TEST(JobIdentity, IsTakenOverFromAReleaseThatNamedJobsByTheirPath) {
  VolatileDisk disk;
  checkpoint_job(disk, with_global("/home/job/g"), {{7, 4}, {8, 1}});
  const std::string key = job_directories(disk, "/home/job/g").at(0);
  const std::string old_key = store::old_job_key("job", "/home/job/g");
  rename_on(disk, "/home/job/g/" + key, "/home/job/g/" + old_key);
  rename_on(disk, "/memory/" + key, "/memory/" + old_key);
  disk.erase("/home/job/g/" + old_key + "/identity");
  disk.erase("/memory/" + old_key + "/identity");
  expect_goes_on(disk, with_global("/home/job/g"), 8);
  rename_on(disk, "/home/job/g", "/home/job/moved");
  expect_goes_on(disk, with_global("/home/job/moved"), 8);
}

TEST(JobIdentity, IsKnownToTheNodesWhenTheGlobalDirectoryIsGone) {
  VolatileDisk disk;
  checkpoint_job(disk, with_global("/home/job/g"), {{8, 1}});
  disk.erase("/home/job/g");
  expect_goes_on(disk, with_global("/home/job/g"), 8);
  EXPECT_THAT(job_directories(disk, "/memory"), SizeIs(1));
}

TEST(JobIdentity, OfACopyBesideItsOriginalIsItsOwn) {
  VolatileDisk disk;
  checkpoint_job(disk, with_global("/home/job/g"), {{7, 4}});
  copy_on(disk, "/home/job/g", "/home/job/copy");
  checkpoint_job(disk, with_global("/home/job/g"), {{8, 1}});

  Shape copy = with_global("/home/job/copy");
  Said said;
  copy.log = said.sink();
  expect_goes_on(disk, copy, 7);
  EXPECT_THAT(said.text, HasSubstr("is a copy of the job in /home/job/g"));
  checkpoint_job(disk, copy, {{9, 1}});
  expect_goes_on(disk, copy, 9);
  expect_goes_on(disk, with_global("/home/job/g"), 8);
  EXPECT_NE(job_directories(disk, "/home/job/g"), job_directories(disk, "/home/job/copy"));
  EXPECT_THAT(job_directories(disk, "/memory"), SizeIs(2));
}

TEST(JobIdentity, GoesOnInACopyWhoseOriginalIsGone) {
  VolatileDisk disk;
  checkpoint_job(disk, with_global("/home/job/g"), {{7, 4}, {8, 1}});
  copy_on(disk, "/home/job/g", "/home/job/copy");
  disk.erase("/home/job/g");
  expect_goes_on(disk, with_global("/home/job/copy"), 8);
}

TEST(JobIdentity, OfACopyIsGivenInFullAtTheNextStartIfTheFirstDied) {
  for (std::uint64_t call = 0;; ++call) {
    VolatileDisk disk;
    Shape one = with_global("/home/job/copy");
    one.ranks = 1;
    Shape original = with_global("/home/job/g");
    original.ranks = 1;
    checkpoint_job(disk, original, {{7, 4}});
    copy_on(disk, "/home/job/g", "/home/job/copy");
    FaultKernel kernel(disk, {Fault::stop, call, Call::any, EIO});
    (void)run_job(kernel, one, [](library::Engine&, Program&, std::uint32_t) {});
    disk.power_loss(PowerLoss::random, call);
    expect_goes_on(disk, one, 7);
    expect_goes_on(disk, original, 7);
    EXPECT_THAT(job_directories(disk, "/home/job/copy"), SizeIs(1)) << call;
    if (!kernel.reached() || testing::Test::HasFailure()) break;
  }
}

TEST(JobIdentity, DoesNotDependOnWhatAMachineIsCalled) {
  VolatileDisk disk;
  Shape shape;
  shape.ranks = 2;
  checkpoint_job(disk, shape, {{7, 1}});
  shape.node_names = {"renamed"};
  Said said;
  shape.log = said.sink();
  expect_goes_on(disk, shape, 7);
  EXPECT_THAT(said.text, HasSubstr("what node0 left in /memory"));
  checkpoint_job(disk, shape, {{8, 1}});
  shape.node_names = {"node0"};
  expect_goes_on(disk, shape, 8);
}

TEST(JobIdentity, OfARenamedMachineBringsTogetherWhatItHasUnderBothNames) {
  VolatileDisk disk;
  Shape shape;
  shape.ranks = 2;
  shape.config = "[level1]\nkeep = 9\n";
  checkpoint_job(disk, shape, {{7, 1}});
  const std::string place = node_directory(disk, "node0");
  copy_on(disk, place.substr(0, place.size() - 1), "/aside");
  checkpoint_job(disk, shape, {{8, 1}});
  copy_on(disk, "/aside", place.substr(0, place.size() - 6) + "older");
  disk.erase(place + "v7");
  expect_goes_on(disk, shape, 8);
  EXPECT_EQ(node_directory(disk, "older"), "");
  const Restarted older = restart_job(disk, shape, 7);
  EXPECT_TRUE(older.status && older.intact);
}

}  // namespace
}  // namespace diapause::test_support
