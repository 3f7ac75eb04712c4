#include "format/identity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/checksum.hpp"
#include "format/test_bytes.hpp"

namespace diapause::format {
namespace {

using testing::HasSubstr;

JobIdentity sample_identity() {
  JobIdentity identity;
  for (std::uint8_t i = 0; i < 16; ++i) identity.id.bytes[i] = static_cast<std::uint8_t>(0x10 + i);
  identity.created_unix_ns = 1767225600'000000000;
  identity.job = "heat";
  identity.key = "heat-10111213";
  identity.home = "/scratch/heat run/diapause";
  return identity;
}

void seal_identity(ByteVector& bytes) {
  const Digest128 digest = digest128(ByteView(bytes).first(bytes.size() - 16));
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[bytes.size() - 16 + i] = static_cast<std::byte>(digest.low >> (8 * i));
    bytes[bytes.size() - 8 + i] = static_cast<std::byte>(digest.high >> (8 * i));
  }
}

TEST(Identity, IsReadAsItWasWritten) {
  const auto read = decode_identity(encode_identity(sample_identity()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, sample_identity());
}

TEST(Identity, IsRefusedWhereOneByteDiffersOrIsMissing) {
  const ByteVector sound = encode_identity(sample_identity());
  for (std::size_t at = 0; at < sound.size(); ++at) {
    ByteVector broken = sound;
    broken[at] ^= std::byte{0x40};
    EXPECT_FALSE(decode_identity(broken)) << at;
    EXPECT_FALSE(decode_identity(ByteView(sound).first(at))) << at;
  }
}

TEST(Identity, OfALaterFormatVersionIsNoDamage) {
  ByteVector later = encode_identity(sample_identity());
  later[8] = std::byte{2};
  seal_identity(later);
  const auto read = decode_identity(later);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::mismatch);
  EXPECT_THAT(read.error().message, HasSubstr("format version 2"));
}

TEST(Identity, NamesNoDirectoryOutsideOfItsRoot) {
  for (const char* key : {"", ".", "..", "../heat", "a/b"}) {
    JobIdentity hostile = sample_identity();
    hostile.key = key;
    EXPECT_FALSE(decode_identity(encode_identity(hostile))) << key;
  }
}

}  // namespace
}  // namespace diapause::format
