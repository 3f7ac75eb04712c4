#include "store/finished.hpp"

#include <gmock/gmock.h>

namespace diapause::store {
namespace {

FinishedMark with_archive() {
  FinishedMark mark;
  mark.incarnation = 3;
  mark.archive = format::VersionId{3, 140, {}};
  mark.archive->commit.bytes[15] = 0x2a;
  return mark;
}

TEST(Finished, IsReadAsItWasWritten) {
  for (const FinishedMark& mark : {FinishedMark{7, {}}, with_archive()}) {
    const auto read = decode_finished(encode_finished(mark));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, mark);
  }
}

// A mark that the first version wrote stays readable for ever; docs/formats/finished.md shows the
// same one.
TEST(Finished, OfTheFirstFormatVersionIsRead) {
  const auto read = decode_finished(
      "diapause finished 1\n"
      "incarnation 3\n"
      "archive v140-i3-0000000000000000000000000000002a\n"
      "digest 40e389e76b927492\n");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, with_archive());
}

TEST(Finished, CoversEveryStartUpToTheOneThatFinished) {
  EXPECT_TRUE(with_archive().covers({3, 999, {}}));
  EXPECT_FALSE(with_archive().covers({4, 1, {}}));
  EXPECT_FALSE(FinishedMark{}.covers({1, 1, {}}));
}

TEST(Finished, IsRefusedWithAnyByteChangedAndAtAnyLengthButItsOwn) {
  const std::string text = encode_finished(with_archive());
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(decode_finished(changed)) << i;
    EXPECT_FALSE(decode_finished(text.substr(0, i))) << i;
  }
  EXPECT_FALSE(decode_finished(text + "\n"));
}

}  // namespace
}  // namespace diapause::store
