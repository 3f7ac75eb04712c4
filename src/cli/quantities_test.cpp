#include "cli/quantities.hpp"

#include <gtest/gtest.h>

namespace diapause::cli {
namespace {

TEST(Quantities, TimesAndSizesHaveUnits) {
  EXPECT_EQ(parse_time_s("90").value(), 90);
  EXPECT_EQ(parse_time_s("15min").value(), 900);
  EXPECT_EQ(parse_time_s("2.5 d").value(), 216000);
  EXPECT_EQ(parse_time_s("1y").value(), 31557600);
  EXPECT_EQ(parse_size_bytes("2GiB").value(), 0x1p31);
  EXPECT_EQ(parse_size_bytes("10PB").value(), 1e16);
}

TEST(Quantities, OtherWordsAreRefused) {
  for (const char* word : {"", "s", "-1s", "1fortnight", "nan", "inf", "1e400", "1e13s", "1 2"}) {
    EXPECT_FALSE(parse_time_s(word)) << word;
    EXPECT_FALSE(parse_size_bytes(word) && parse_time_s(word)) << word;
  }
}

TEST(Quantities, DurationsReadWell) {
  EXPECT_EQ(duration_text(0), "0 s");
  EXPECT_EQ(duration_text(0.0123), "12.3 ms");
  EXPECT_EQ(duration_text(119), "119 s");
  EXPECT_EQ(duration_text(5400), "90 min");
  EXPECT_EQ(duration_text(1.0 / 0.0), "never");
  EXPECT_EQ(duration_text(119, 2), "120 s");
  EXPECT_EQ(duration_text(1111, 2), "19 min");
  EXPECT_EQ(duration_text(300 * 86400, 2), "300 d");
  EXPECT_EQ(duration_text(2000 * 31557600.), "2000 y");
}

}  // namespace
}  // namespace diapause::cli
