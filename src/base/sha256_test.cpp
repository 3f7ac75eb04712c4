#include "base/sha256.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace diapause {
namespace {

ByteView view(std::string_view text) { return as_byte_view(text); }

std::string text_of(const Digest& digest) {
  std::string text;
  for (const std::byte one : digest) {
    text += "0123456789abcdef"[std::to_integer<int>(one) >> 4];
    text += "0123456789abcdef"[std::to_integer<int>(one) & 15];
  }
  return text;
}

TEST(Sha256, GivesTheDigestsOfTheStandard) {
  EXPECT_EQ(text_of(sha256({})),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(text_of(sha256(view("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(text_of(sha256(view("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Sha256, GivesTheKeyedDigestsOfTheStandard) {
  EXPECT_EQ(text_of(hmac_sha256(view("Jefe"), view("what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  const std::string long_key(131, '\xaa');
  EXPECT_EQ(text_of(hmac_sha256(view(long_key),
                                view("Test Using Larger Than Block-Size Key - Hash Key First"))),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Sha256, TellsSecretsApart) {
  EXPECT_TRUE(is_equal_secret(view("abc"), view("abc")));
  EXPECT_FALSE(is_equal_secret(view("abc"), view("abd")));
  EXPECT_FALSE(is_equal_secret(view("abc"), view("ab")));
}

}  // namespace
}  // namespace diapause
