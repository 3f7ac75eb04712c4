#include "format/starts.hpp"

#include <gtest/gtest.h>

#include "format/checksum.hpp"
#include "format/wire.hpp"

namespace diapause::format {
namespace {

Starts three_starts() {
  Starts starts;
  starts.list.push_back({1, 1767225600'000000000, std::nullopt, true, "node-a node-b"});
  starts.list.push_back({2, 1767312000'000000000, std::nullopt, true, "node-c"});
  starts.list.push_back({5, 1767398400'000000000, VersionId{2, 70, {}}, false, ""});
  starts.list[2].from->commit.bytes[15] = 0xab;
  return starts;
}

TEST(Starts, AreReadAsTheyWereWritten) {
  const auto read = decode_starts(encode_starts(three_starts()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, three_starts());
  EXPECT_EQ(decode_starts(encode_starts({}))->last_incarnation(), 0u);
}

TEST(Starts, AreRefusedWhereOneByteDiffersOrIsMissing) {
  const ByteVector sound = encode_starts(three_starts());
  for (std::size_t at = 0; at < sound.size(); ++at) {
    ByteVector broken = sound;
    broken[at] ^= std::byte{0x20};
    EXPECT_FALSE(decode_starts(broken)) << at;
    EXPECT_FALSE(decode_starts(ByteView(sound).first(at))) << at;
  }
}

// The file is sound, except that the number of starts is missing.
TEST(Starts, AreRefusedWithoutTheirNumber) {
  Writer writer(40);
  writer.text("DIAPSTA1");
  writer.u32(1);
  writer.u32(0);
  writer.u64(40);
  writer.digest(digest128(writer.written()));
  const auto read = decode_starts(writer.written());
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::corrupt);
}

TEST(Starts, OfAHistoryAreFollowedToWhereItBeganAnew) {
  const Starts starts = three_starts();
  EXPECT_EQ(starts.root_of(5), 2u);
  EXPECT_EQ(starts.root_of(1), 1u);
  EXPECT_EQ(starts.root_of(9), 9u);
}

TEST(Starts, OfLongAgoAreLeftOut) {
  Starts many;
  for (std::uint32_t i = 1; i <= Starts::kMost + 10; ++i)
    many.list.push_back({i, i, std::nullopt, false, "n"});
  const auto read = decode_starts(encode_starts(many));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->list.size(), Starts::kMost);
  EXPECT_EQ(read->last_incarnation(), Starts::kMost + 10);
}

TEST(Starts, DoNotGoOnFromLaterOnes) {
  Starts hostile = three_starts();
  hostile.list[2].from->incarnation = 5;
  EXPECT_FALSE(decode_starts(encode_starts(hostile)));
}

}  // namespace
}  // namespace diapause::format
