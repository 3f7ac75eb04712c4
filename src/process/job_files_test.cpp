#include "process/job_files.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "process/put_back_files.hpp"
#include "sys/process.hpp"

namespace diapause::process {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Has a directory with files.
class FilesOfAJob : public ::testing::Test {
 protected:
  FilesOfAJob() {
    std::string pattern = ::testing::TempDir() + "job-files-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    root_ = fs::canonical(pattern);
  }
  ~FilesOfAJob() override { fs::remove_all(root_); }

  std::string path(const std::string& name) const { return root_ / name; }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(path(name)).parent_path());
    std::ofstream(path(name)) << text;
  }
  // As if it had last been changed a while ago.
  void write_earlier(const std::string& name, const std::string& text) const {
    write(name, text);
    const timespec times[2] = {{1000, 0}, {1000, 7}};
    ::utimensat(AT_FDCWD, path(name).c_str(), times, 0);
  }
  std::string read(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::vector<std::string> matching(const std::vector<std::string>& patterns,
                                    const FileView& view = {}) const {
    const auto found = files_matching(absolute_patterns(patterns, root_), view);
    EXPECT_TRUE(found);
    std::vector<std::string> names;
    for (const std::string& one : *found) names.push_back(fs::relative(one, root_));
    return names;
  }
  // Looks, lets `change` happen, and returns what is then taken down.
  Dump dump_of(const std::vector<std::string>& patterns, const std::function<void()>& change = {},
               const std::set<std::string>& elsewhere = {}) const {
    JobFiles files(absolute_patterns(patterns, root_), {});
    constexpr std::uint64_t kWhile_ns = 10'000'000'000;
    EXPECT_TRUE(files.look(sys::unix_time_ns() + kWhile_ns));
    if (change) change();
    Dump dump;
    EXPECT_TRUE(files.add_to(dump, elsewhere));
    return dump;
  }
  static std::string contents_of(const Dump& dump, std::size_t index) {
    const ByteVector& bytes = dump.contents.at(index).read;
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  static std::vector<StoredContents> stored(const Dump& dump) {
    std::vector<StoredContents> contents;
    for (const Contents& one : dump.contents)
      contents.push_back({0, one.shared, 0, one.bytes, contents.size()});
    return contents;
  }
  // Puts back what was taken down, as a restart does.
  static Status put_back(const Dump& dump) {
    const std::vector<StoredContents> contents = stored(dump);
    DIAPAUSE_TRY(check_files_to_put_back(dump.job, contents));
    const ReadContents read = [&](const ContentsList& list, const TakePiece& take) -> Status {
      for (const StoredContents* one : list)
        DIAPAUSE_TRY(take(*one, 0, dump.contents[one->region].read));
      return {};
    };
    return put_back_files(dump.job, contents, read);
  }

  fs::path root_;
};

TEST_F(FilesOfAJob, AreFoundByPathDirectoryAndGlob) {
  for (const char* name : {"a.log", "b.log", "c.dat", "out/deep/d", "out/e", "other/f"})
    write(name, "x");
  EXPECT_THAT(matching({"c.dat"}), ElementsAre("c.dat"));
  EXPECT_THAT(matching({"*.log", "./a.log"}), ElementsAre("a.log", "b.log"));
  EXPECT_THAT(matching({"out"}), ElementsAre("out/deep/d", "out/e"));
  EXPECT_THAT(matching({"o*/"}), ElementsAre("other/f", "out/deep/d", "out/e"));
  EXPECT_THAT(matching({"missing", "missing/*"}), IsEmpty());
}

TEST_F(FilesOfAJob, AreFoundByLinksThatAPatternNames) {
  write("real/a", "x");
  write("real/b", "x");
  fs::create_symlink("real", path("way"));
  fs::create_symlink("real/b", path("link"));
  fs::create_symlink("nowhere", path("lost"));
  fs::create_directory(path("below"));
  fs::create_symlink("../real", path("below/way"));
  fs::create_symlink("../real/a", path("below/link"));
  EXPECT_THAT(matching({"way/a", "link", "lost"}), ElementsAre("real/a", "real/b"));
  EXPECT_THAT(matching({"way"}), ElementsAre("real/a", "real/b"));
  EXPECT_THAT(matching({"below"}), IsEmpty());
}

TEST_F(FilesOfAJob, AreNotThoseOfTiersOrThatWerePutAside) {
  for (const char* name :
       {"a", "a.undone", "a.undone.12", "a.undone.x", "undone", "tier/b", "tiers/c"})
    write(name, "x");
  FileView view;
  view.apart = {path("tier")};
  EXPECT_THAT(matching({"."}, view), ElementsAre("a", "a.undone.x", "tiers/c", "undone"));
  EXPECT_THAT(matching({"tier/b", "tier"}, view), IsEmpty());
  view.apart = {path("a"), path("tiers/c")};
  EXPECT_THAT(matching({".", "a"}, view), ElementsAre("a.undone.x", "tier/b", "undone"));
}

TEST_F(FilesOfAJob, AreTakenDownAsTheyAreWhenTheJobStandsStill) {
  write_earlier("same", "before");
  write_earlier("changed", "before");
  write_earlier("gone", "before");
  const Dump dump = dump_of({"*"}, [&] {
    write("changed", "behind");
    write("new", "more");
    fs::remove(path("gone"));
  });
  ASSERT_EQ(dump.job.files.size(), 3u);
  EXPECT_EQ(dump.job.files[0].path, path("new"));  // smaller files come first
  EXPECT_EQ(contents_of(dump, 0), "more");
  EXPECT_EQ(contents_of(dump, 1), "behind");
  EXPECT_EQ(contents_of(dump, 2), "before");
  EXPECT_EQ(dump.job.files[2].modified_ns, 1'000'000'000'007);
  EXPECT_TRUE(dump.job.memories[0].is_stored);
}

TEST_F(FilesOfAJob, AreHeldOnce) {
  write("open", "12345");
  write("mapped", "12345");
  write("printed", "x");
  write("there", "x");
  JobFiles files(absolute_patterns({"*"}, root_), {});
  Dump dump;
  for (const char* name : {"open", "mapped"}) {
    SharedMemory& memory = dump.job.memories.emplace_back();
    memory.kind = SharedKind::file;
    memory.path = path(name);
    memory.bytes = 5;
  }
  dump.job.memories[0].is_stored = true;
  Contents& held = dump.contents.emplace_back();
  held.bytes = 5;
  held.shared = 0;
  Description& standard = dump.job.descriptions.emplace_back();
  standard.kind = DescriptionKind::standard;
  standard.path = path("printed");
  ASSERT_TRUE(files.add_to(dump, {path("there")}));
  std::map<std::string, std::uint32_t> memories;
  for (const JobFile& one : dump.job.files) memories[fs::path(one.path).filename()] = one.memory;
  EXPECT_EQ(memories, (std::map<std::string, std::uint32_t>{
                          {"open", 0}, {"mapped", 2}, {"printed", kNone}, {"there", kNone}}));
  ASSERT_EQ(dump.contents.size(), 2u);
  EXPECT_EQ(dump.contents[1].shared, 2u);
}

TEST_F(FilesOfAJob, AreMadeWhatTheyWere) {
  write_earlier("longer", "before");
  write_earlier("other", "before");
  write_earlier("gone/deep/file", "before");
  write_earlier("empty", "");
  ::chmod(path("gone/deep/file").c_str(), 0604);
  const Dump dump = dump_of({"."});
  write("longer", "before and after");
  write("other", "BEFORE");
  write("empty", "filled");
  fs::remove_all(path("gone"));
  ASSERT_TRUE(put_back(dump));
  for (const char* name : {"longer", "other", "gone/deep/file"}) {
    struct stat now {};
    EXPECT_EQ(read(name), "before") << name;
    ASSERT_EQ(::stat(path(name).c_str(), &now), 0);
    EXPECT_EQ(now.st_mtim.tv_sec, 1000) << name;
    EXPECT_EQ(now.st_mtim.tv_nsec, 7) << name;
  }
  EXPECT_EQ(read("empty"), "");
  EXPECT_EQ(fs::status(path("gone/deep/file")).permissions(), fs::perms(0604));
}

TEST_F(FilesOfAJob, AreCutIfTheyAreLarge) {
  write("large", "begin");
  fs::resize_file(path("large"), kMostOfAFile + 1);
  const Dump dump = dump_of({"*"});
  EXPECT_THAT(dump.contents, IsEmpty());
  std::ofstream(path("large"), std::ios::app) << "more";
  ASSERT_TRUE(put_back(dump));
  EXPECT_EQ(fs::file_size(path("large")), kMostOfAFile + 1);
  fs::resize_file(path("large"), 5);
  EXPECT_THAT(put_back(dump).error().message, HasSubstr("and has 5 now"));
  fs::remove(path("large"));
  EXPECT_THAT(put_back(dump).error().message, HasSubstr("is gone"));
}

TEST_F(FilesOfAJob, AreRefusedIfSomethingElseHasTheirName) {
  write("file", "x");
  write("secret", "mine");
  const Dump dump = dump_of({"file"});
  fs::remove(path("file"));
  fs::create_symlink("secret", path("file"));
  EXPECT_THAT(put_back(dump).error().message, HasSubstr("is a directory, a link"));
  EXPECT_EQ(read("secret"), "mine");
  fs::remove(path("file"));
  fs::create_directory(path("file"));
  EXPECT_THAT(put_back(dump).error().message, HasSubstr("is a directory, a link"));
}

TEST_F(FilesOfAJob, AreRefusedBeforeAnythingIsWrittenIfThereIsNoRoomForThem) {
  write("file", "x");
  write("large", "x");
  Dump dump = dump_of({"*"});
  std::vector<StoredContents> contents = stored(dump);
  for (StoredContents& one : contents) {
    SharedMemory& memory = dump.job.memories[one.shared];
    if (memory.path == path("large")) memory.bytes = one.bytes = std::uint64_t{1} << 60;
  }
  write("file", "y");
  const Status checked = check_files_to_put_back(dump.job, contents);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Code::full);
  EXPECT_THAT(checked.error().message,
              HasSubstr(root_.native() + " needs 1152921504606846975 bytes"));
}

TEST_F(FilesOfAJob, NeedNoRoomForWhatTheImageDoesNotHold) {
  write("file", "x");
  Dump dump = dump_of({"*"});
  dump.job.memories.at(0).bytes = std::uint64_t{1} << 60;
  EXPECT_TRUE(check_files_to_put_back(dump.job, stored(dump)));
}

TEST_F(FilesOfAJob, KeepTheirHoles) {
  constexpr std::uint64_t kBytes = 32 * kMiB;
  write("file", "x");
  fs::resize_file(path("file"), kBytes);
  const Dump dump = dump_of({"*"});
  const auto taken = [&] {
    struct stat found {};
    EXPECT_EQ(::stat(path("file").c_str(), &found), 0);
    EXPECT_EQ(static_cast<std::uint64_t>(found.st_size), kBytes);
    return static_cast<std::uint64_t>(found.st_blocks) * 512;
  };
  if (taken() >= kMiB) GTEST_SKIP() << "the file system has no holes";
  write("file", "y");
  ASSERT_TRUE(put_back(dump));
  EXPECT_LT(taken(), kMiB);
  fs::remove(path("file"));
  ASSERT_TRUE(put_back(dump));
  EXPECT_LT(taken(), kMiB);
  EXPECT_EQ(read("file"), "x" + std::string(kBytes - 1, '\0'));
}

TEST_F(FilesOfAJob, ArePutAsideIfTheyWereNotThere) {
  write("old", "x");
  const Dump dump = dump_of({"*"});
  write("new", "1");
  for (int time = 0; time < 2; ++time) {
    const auto aside = put_aside_new_files(dump.job, {});
    ASSERT_TRUE(aside);
    EXPECT_THAT(*aside, ElementsAre(path("new")));
    EXPECT_THAT(*put_aside_new_files(dump.job, {}), IsEmpty());
    write("new", "2");
  }
  EXPECT_EQ(read("new.undone"), "1");
  EXPECT_EQ(read("new.undone.2"), "2");
  EXPECT_TRUE(fs::exists(path("old")));
}

TEST_F(FilesOfAJob, AreLeftAloneWhileAnotherProgramWritesThem) {
  const Dump dump = dump_of({"*"});
  std::ofstream log(path("log"));
  EXPECT_THAT(*put_aside_new_files(dump.job, {}), IsEmpty());
  log.close();
  EXPECT_THAT(*put_aside_new_files(dump.job, {}), ElementsAre(path("log")));
}

TEST_F(FilesOfAJob, AreNamedIfTheyHaveChangedAndAreNotHeld) {
  write("held", "x");
  write_earlier("earlier", "x");
  Dump dump = dump_of({"held"});
  dump.job.processes.emplace_back().directory = root_;
  dump.job.unix_ns = 2'000'000'000'000;
  for (const char* name : {"changed", "later", "a.undone", "below/unseen"}) write(name, "x");
  EXPECT_THAT(files_changed_since(dump.job, {}), ElementsAre(path("changed"), path("later")));
  FileView view;
  view.apart = {root_};
  EXPECT_THAT(files_changed_since(dump.job, view), IsEmpty());
  view.apart = {path("later")};
  EXPECT_THAT(files_changed_since(dump.job, view), ElementsAre(path("changed")));
  dump.job.unix_ns = 0;
  EXPECT_THAT(files_changed_since(dump.job, {}), IsEmpty());
}

TEST(NamesOfFiles, AreShortened) {
  EXPECT_EQ(some_of({"a"}), "a");
  EXPECT_EQ(some_of({"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(some_of({"a", "b", "c", "d", "e"}), "a, b, c and 2 more");
}

}  // namespace
}  // namespace diapause::process
