#include "redundancy/reed_solomon.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <random>

#include "support/value_of.hpp"

namespace diapause::redundancy {
namespace {

using Chunks = std::vector<ByteVector>;

Chunks random_chunks(std::size_t count, std::size_t length, std::uint32_t seed) {
  std::mt19937 random(seed);
  Chunks chunks(count, ByteVector(length));
  for (ByteVector& chunk : chunks) {
    for (std::byte& byte : chunk) byte = static_cast<std::byte>(random());
  }
  return chunks;
}

std::vector<const std::byte*> views(const Chunks& chunks, std::size_t first, std::size_t count) {
  std::vector<const std::byte*> pointers;
  for (std::size_t i = first; i < first + count; ++i) pointers.push_back(chunks[i].data());
  return pointers;
}

std::vector<std::byte*> targets(Chunks& chunks) {
  std::vector<std::byte*> pointers;
  for (ByteVector& chunk : chunks) pointers.push_back(chunk.data());
  return pointers;
}

// Returns the data chunks followed by the parity chunks.
Chunks codeword(const ReedSolomon& code, std::size_t length, std::uint32_t seed) {
  Chunks chunks = random_chunks(code.k(), length, seed);
  Chunks parity(code.m(), ByteVector(length));
  code.encode(views(chunks, 0, code.k()), targets(parity), length);
  chunks.insert(chunks.end(), parity.begin(), parity.end());
  return chunks;
}

// Returns the chunks named in `erased`, decoded from the first k others.
Chunks decoded(const ReedSolomon& code, const Chunks& word, std::uint32_t erased) {
  std::vector<std::uint32_t> available, wanted;
  std::vector<const std::byte*> from;
  for (std::uint32_t i = 0; i < word.size(); ++i) {
    if (erased >> i & 1U) {
      wanted.push_back(i);
    } else if (available.size() < code.k()) {
      available.push_back(i);
      from.push_back(word[i].data());
    }
  }
  const auto decoder = test_support::value_of(code.decoder(available, wanted));
  Chunks result(wanted.size(), ByteVector(word[0].size()));
  decoder.decode(from, targets(result), word[0].size());
  return result;
}

Chunks chosen(const Chunks& word, std::uint32_t mask) {
  Chunks result;
  for (std::uint32_t i = 0; i < word.size(); ++i) {
    if (mask >> i & 1U) result.push_back(word[i]);
  }
  return result;
}

TEST(ReedSolomon, DecodesEveryErasurePatternOfAtMostMChunks) {
  constexpr std::size_t kLength = 97;  // vector code and its tail
  for (std::uint32_t k = 1; k <= 8; ++k) {
    for (std::uint32_t m = 1; m <= 4; ++m) {
      const auto code = ReedSolomon::create(k, m);
      ASSERT_TRUE(code.has_value());
      const Chunks word = codeword(*code, kLength, k * 10 + m);
      for (std::uint32_t erased = 0; erased < 1U << (k + m); ++erased) {
        if (std::popcount(erased) > static_cast<int>(m)) continue;
        ASSERT_EQ(decoded(*code, word, erased), chosen(word, erased))
            << "k " << k << " m " << m << " mask " << erased;
      }
    }
  }
}

TEST(ReedSolomon, DecodesChunksOfAnyLengthAtAnyAddress) {
  const auto code = ReedSolomon::create(5, 3);
  for (const std::size_t length : {1, 2, 15, 16, 31, 32, 63, 64, 65, 127, 4096, 70001}) {
    const Chunks word = codeword(*code, length, 7);
    EXPECT_EQ(decoded(*code, word, 0b01010100), chosen(word, 0b01010100)) << length;
    Chunks shifted = word;
    for (ByteVector& chunk : shifted) chunk.insert(chunk.begin(), std::byte{0});
    Chunks parity(3, ByteVector(length + 1));
    std::vector<const std::byte*> from = views(shifted, 0, 5);
    std::vector<std::byte*> to = targets(parity);
    for (auto& pointer : from) ++pointer;
    for (auto& pointer : to) ++pointer;
    code->encode(from, to, length);
    EXPECT_EQ(parity, Chunks(shifted.begin() + 5, shifted.end())) << length;
  }
}

TEST(ReedSolomon, TheWidestCodesDecode) {
  for (const auto& [k, m] : {std::pair{254U, 1U}, std::pair{1U, 254U}, std::pair{128U, 127U}}) {
    const auto code = ReedSolomon::create(k, m);
    ASSERT_TRUE(code.has_value());
    const Chunks word = codeword(*code, 80, 3);
    std::vector<std::uint32_t> available, wanted{0};
    for (std::uint32_t i = m; i < k + m; ++i) available.push_back(i);
    const auto decoder = code->decoder(available, wanted);
    ASSERT_TRUE(decoder.has_value());
    Chunks result(1, ByteVector(80));
    decoder->decode(views(word, m, k), targets(result), 80);
    EXPECT_EQ(result[0], word[0]) << k;
  }
}

TEST(ReedSolomon, AccumulatingInAnyOrderEqualsEncoding) {
  std::mt19937 random(5);
  for (const std::size_t length : {1, 40, 64, 97, 4096}) {
    const auto code = ReedSolomon::create(6, 3);
    const Chunks word = codeword(*code, length, 11);
    std::vector<std::uint32_t> order{0, 1, 2, 3, 4, 5};
    for (int round = 0; round < 10; ++round) {
      std::ranges::shuffle(order, random);
      Chunks parity(3, ByteVector(length));
      for (const std::uint32_t i : order) code->accumulate(i, word[i], targets(parity));
      ASSERT_EQ(parity, Chunks(word.begin() + 6, word.end())) << length;
    }
  }
}

TEST(ReedSolomon, EncodingOneParityEqualsEncodingAll) {
  const auto code = ReedSolomon::create(6, 3);
  for (const std::size_t length : {1, 40, 64, 97, 4096}) {
    const Chunks word = codeword(*code, length, 13);
    for (std::uint32_t j = 0; j < 3; ++j) {
      ByteVector parity(length);
      code->encode_one(j, views(word, 0, 6), parity.data(), length);
      EXPECT_EQ(parity, word[6 + j]) << length;
    }
  }
}

TEST(ReedSolomon, NothingHappensToChunksOfNoLength) {
  const auto code = ReedSolomon::create(2, 1);
  std::byte parity{7};
  const std::vector<const std::byte*> from{nullptr, nullptr};
  const std::vector<std::byte*> to{&parity};
  code->encode(from, to, 0);
  code->accumulate(0, {}, to);
  code->decoder(std::vector{0U, 1U}, std::vector{2U})->decode(from, to, 0);
  EXPECT_EQ(parity, std::byte{7});
}

TEST(ReedSolomon, RefusesSizesThatDoNotExist) {
  for (const auto& [k, m] :
       {std::pair{0U, 1U}, std::pair{1U, 0U}, std::pair{255U, 1U}, std::pair{1U, 0xffffffffU}}) {
    const auto code = ReedSolomon::create(k, m);
    ASSERT_FALSE(code.has_value());
    EXPECT_EQ(code.error().code, Code::argument);
    EXPECT_THAT(code.error().message, testing::HasSubstr(std::to_string(k)));
  }
}

TEST(ReedSolomon, RefusesToDecodeFromAnythingButKDifferentChunks) {
  const auto code = ReedSolomon::create(3, 2);
  const std::vector<std::uint32_t> wanted{0};
  for (const auto& available :
       std::vector<std::vector<std::uint32_t>>{{}, {1, 2}, {1, 2, 2}, {1, 2, 3, 4}, {1, 2, 5}}) {
    EXPECT_EQ(code->decoder(available, wanted).error().code, Code::argument);
  }
  EXPECT_EQ(code->decoder(std::vector{0U, 1U, 2U}, std::vector{5U}).error().code, Code::argument);
}

}  // namespace
}  // namespace diapause::redundancy
