#include "sys/text_file.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

namespace diapause::sys {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ReadLines : public testing::Test {
 protected:
  ~ReadLines() override { std::filesystem::remove_all(directory_); }

  std::vector<std::string> lines_of(const std::string& text) {
    std::ofstream(path_) << text;
    std::vector<std::string> lines;
    EXPECT_TRUE(
        read_lines(real_kernel(), path_, [&](std::string_view line) { lines.emplace_back(line); }));
    return lines;
  }

  std::string refusal_of(const std::string& path) {
    const Status done = read_lines(real_kernel(), path, [](std::string_view) { FAIL(); });
    return done ? "" : done.error().message;
  }

  std::string make_directory() {
    std::string path = testing::TempDir() + "diapause-lines-XXXXXX";
    return mkdtemp(path.data());
  }

  const std::string directory_ = make_directory();
  const std::string path_ = directory_ + "/lines";
};

TEST_F(ReadLines, GivesWhatStandsBetweenLineEndsAndBehindTheLast) {
  EXPECT_THAT(lines_of("one\ntwo\n\nthree"), ElementsAre("one", "two", "three"));
}

TEST_F(ReadLines, AnEmptyFileHasNone) { EXPECT_THAT(lines_of(""), ElementsAre()); }

TEST_F(ReadLines, PutsALineTogetherThatIsReadInPieces) {
  const std::string a((std::size_t{1} << 20) - 3, 'a'), b(std::size_t{3} << 20, 'b');
  EXPECT_THAT(lines_of(a + "\n" + b + "\nc\n"), ElementsAre(a, b, "c"));
}

TEST_F(ReadLines, LeavesOutALineOfMoreThan16MiB) {
  const std::string most(std::size_t{16} << 20, 'm');
  EXPECT_EQ(lines_of("a\n" + most + "\nb\n").size(), 3U);
  EXPECT_THAT(lines_of("a\n" + most + "m\nb\n"), ElementsAre("a", "b"));
}

TEST_F(ReadLines, RefusesWhatIsNoFileAndNamesIt) {
  EXPECT_THAT(refusal_of(directory_), HasSubstr(directory_ + " is not a regular file"));
  EXPECT_THAT(refusal_of(path_), HasSubstr(path_));
}

TEST_F(ReadLines, AWholeTextIsNotReadFromAPipe) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const auto text = read_text_file(real_kernel(), path_);
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error().message, HasSubstr(path_ + " is a pipe"));
}

TEST_F(ReadLines, AWholeTextIsNotReadFromADeviceButTheOneWithNothingInIt) {
  const auto text = read_text_file(real_kernel(), "/dev/urandom");
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error().message, HasSubstr("/dev/urandom is a device"));
  EXPECT_EQ(read_text_file(real_kernel(), "/dev/null").value_or("?"), "");
}

}  // namespace
}  // namespace diapause::sys
