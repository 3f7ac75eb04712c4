#include "sys/value_file.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "support/scratch_directory.hpp"
#include "sys/line_file.hpp"
#include "sys/text_file.hpp"

namespace diapause::sys {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Files : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text,
                    std::ios::openmode mode = std::ios::out) {
    std::ofstream(folder_ / name, mode) << text;
    return folder_ / name;
  }
  std::string line_of(LineFile& file) {
    const auto line = file.next();
    return line && *line ? **line : "none";
  }

  const test_support::ScratchDirectory scratch_;
  const std::filesystem::path& folder_ = scratch_.path();
};

TEST_F(Files, OfTheKernelAreReadAnewEachTime) {
  const std::string path = write("energy_uj", "123\n");
  const auto file = ValueFile::open(real_kernel(), path);
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->number().value_or(0), 123U);
  write("energy_uj", "456\n");
  EXPECT_EQ(file->number().value_or(0), 456U);
}

TEST_F(Files, WithAUnitBehindTheNumberAreNumbers) {
  EXPECT_EQ(
      read_number(real_kernel(), write("energy", "6954361 J 1644940393293043 us\n")).value_or(0),
      6954361U);
}

TEST_F(Files, WithoutANumberSaySo) {
  for (const char* text : {"", "-5", "12x", "99999999999999999999999", "\n7"}) {
    const auto number = read_number(real_kernel(), write("value", text));
    ASSERT_FALSE(number.has_value()) << text;
    EXPECT_EQ(number.error().code, Code::corrupt);
    EXPECT_THAT(number.error().message, HasSubstr("value holds"));
  }
}

TEST_F(Files, OfProcAreReadThoughTheySayThatTheyAreEmpty) {
  EXPECT_THAT(read_value(real_kernel(), "/proc/self/status").value_or(""), HasSubstr("Name:"));
}

TEST_F(Files, AreListedInTheOrderOfTheirNumbers) {
  for (const char* name : {"hwmon10", "hwmon2", "hwmon1", "zone"}) write(name, "");
  EXPECT_THAT(*list_names(real_kernel(), folder_),
              ElementsAre("hwmon1", "hwmon2", "hwmon10", "zone"));
}

TEST_F(Files, OfLinesGiveThoseThatAreComplete) {
  const std::string path = write("rows", "one\ntw");
  auto file = LineFile::open(real_kernel(), path);
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(line_of(*file), "one");
  EXPECT_EQ(line_of(*file), "none");
  write("rows", "o\n\nfour\n", std::ios::app);
  EXPECT_EQ(line_of(*file), "two");
  EXPECT_EQ(line_of(*file), "");
  EXPECT_EQ(line_of(*file), "four");
}

TEST_F(Files, OfLinesCanBeEnteredNearTheirEnd) {
  std::string rows;
  for (int i = 0; i < 10000; ++i) rows += std::to_string(i) + "\n";
  auto file = LineFile::open(real_kernel(), write("rows", rows));
  EXPECT_EQ(line_of(*file), "0");
  ASSERT_TRUE(file->skip_to_last(12).has_value());
  EXPECT_EQ(line_of(*file), "9998");
}

TEST_F(Files, AreReplacedAsAWholeAndForEverybodyToRead) {
  const std::string path = write("energy.prom", "old");
  const auto before = ValueFile::open(real_kernel(), path);
  ASSERT_TRUE(replace_text_file(real_kernel(), path, "new").has_value());
  EXPECT_EQ(before->text().value_or(""), "old");
  EXPECT_EQ(read_value(real_kernel(), path).value_or(""), "new");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(Files, OfAnotherProcessThatReplacesTheSameAreLeftAlone) {
  const std::string path = write("energy.prom", "old");
  const std::string other = write("energy.prom.new", "half of what another proc");
  ASSERT_TRUE(replace_text_file(real_kernel(), path, "new").has_value());
  EXPECT_EQ(read_value(real_kernel(), other).value_or(""), "half of what another proc");
  EXPECT_EQ(read_value(real_kernel(), path).value_or(""), "new");
}

TEST_F(Files, ThatCannotBeReplacedLeaveNothingBehind) {
  const std::string path = folder_ / "directory";
  std::filesystem::create_directory(path);
  EXPECT_FALSE(replace_text_file(real_kernel(), path, "new").has_value());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(Files, ThatCannotBeMadeAreNamedAsTheyWereTyped) {
  const std::string nowhere = folder_ / "absent" / "energy.prom";
  const std::string expected = "cannot open " + nowhere + ": No such file or directory";
  EXPECT_EQ(replace_text_file(real_kernel(), nowhere, "new").error().message, expected);
  EXPECT_EQ(check_replaceable(real_kernel(), nowhere).error().message, expected);
  EXPECT_EQ(check_replaceable(real_kernel(), folder_).error().message,
            folder_.string() + " is a directory");
  const std::string path = write("energy.prom", "old");
  ASSERT_TRUE(check_replaceable(real_kernel(), path).has_value());
  EXPECT_EQ(read_value(real_kernel(), path).value_or(""), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(Files, OfLinesAreWrittenForTheUserAlone) {
  const std::string path = write("trace", "what was there before\n");
  std::filesystem::remove(path);
  auto writer = TextWriter::create(real_kernel(), path);
  ASSERT_TRUE(writer.has_value());
  ASSERT_TRUE(writer->add_line("one").has_value());
  ASSERT_TRUE(writer->add_line("two").has_value());
  EXPECT_EQ(read_value(real_kernel(), path).value_or(""), "one\ntwo");
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0600));
}

}  // namespace
}  // namespace diapause::sys
