#include "cli/text.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace diapause::cli {
namespace {

TEST(Text, GivesBytesInTheUnitThatFits) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1024), "1.0 KiB");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(1024 * 1024 - 1), "1.0 MiB");
  EXPECT_EQ(bytes_text(std::uint64_t{3} << 30), "3.0 GiB");
  EXPECT_EQ(bytes_text(std::numeric_limits<std::uint64_t>::max()), "16.0 EiB");
}

TEST(Text, GivesAsManyDigitsAsAreKnown) {
  EXPECT_EQ(value_text(283.87, 1.89, "J"), "283.9 +- 1.9 J");
  EXPECT_EQ(value_text(283.87, 6, "J"), "284 +- 6 J");
  EXPECT_EQ(value_text(283.87, 71.2, "J"), "280 +- 70 J");
  EXPECT_EQ(value_text(283.87, 340, "J"), "280 +- 340 J");
  EXPECT_EQ(value_text(0.0912, 0.0004, "J"), "0.0912 +- 0.0004 J");
  EXPECT_EQ(value_text(-3, 12, "J"), "-3 +- 12 J");
  EXPECT_EQ(value_text(5, 0, "J"), "5.00 J");
  EXPECT_EQ(rounded_text(283.87, 2, "J"), "280 J");
  EXPECT_EQ(rounded_text(0, 2, "J"), "0 J");
  EXPECT_EQ(rounded_text(7e-15, 2, "J"), "0 J");
}

TEST(Text, ShortensRunsOfNumbers) {
  EXPECT_EQ(numbers_text({}), "");
  EXPECT_EQ(numbers_text({7}), "7");
  EXPECT_EQ(numbers_text({0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8");
}

TEST(Text, AlignsColumns) {
  Table table({{"NAME"}, {"SIZE", Align::right}, {"REST"}});
  table.add({"a", "1", ""});
  table.add({"long name", "1234567", "x"});
  EXPECT_EQ(table.text("> "),
            "> NAME          SIZE  REST\n"
            "> a                1\n"
            "> long name  1234567  x\n");
}

TEST(Text, KeepsControlCharactersFromTheTerminal) {
  EXPECT_EQ(printable("a\x1b[2Jb\n\x7f"), "a?[2Jb??");
  EXPECT_EQ(printable("\xc3\xbc"), "\xc3\xbc");
  // A command of terminals, a reversal of the direction, an isolate, a mark of the byte order.
  EXPECT_EQ(printable("a\xc2\x9b"
                      "2J\xe2\x80\xae"
                      "b\xe2\x81\xa6"
                      "c\xef\xbb\xbf"
                      "d"),
            "a?2J?b?c?d");
  EXPECT_EQ(printable("\xe2\x80\x94 \xc2"), "\xe2\x80\x94 \xc2");  // a dash, and half a letter
}

}  // namespace
}  // namespace diapause::cli
