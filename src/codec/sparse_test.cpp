#include "codec/sparse.hpp"

#include <gtest/gtest.h>

#include <random>

#include "codec/pack.hpp"

namespace diapause::codec {
namespace {

// Returns bytes of which one in `apart` is not zero.
ByteVector mostly_zeros(std::size_t size, std::uint32_t apart) {
  std::mt19937 random(apart);
  ByteVector bytes(size);
  for (std::byte& value : bytes)
    value = static_cast<std::byte>(random() % apart == 0 ? 1 + random() % 3 : 0);
  return bytes;
}

ByteVector bytes(std::initializer_list<int> values) {
  ByteVector result;
  for (const int value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

TEST(Sparse, GivesBackRunsOfAllLengthsAndDensities) {
  Sparse sparse;
  for (const std::uint32_t apart : {1, 3, 20, 255, 5000}) {
    for (const std::size_t size : {0, 1, 7, 8, 9, 254, 255, 256, 257, 509, 511, 3000}) {
      const ByteVector in = mostly_zeros(size, apart);
      to_sparse(in, sparse);
      EXPECT_EQ(sparse.values.size(), count_nonzero(in));
      ByteVector out(size, std::byte{7});
      ASSERT_TRUE(from_sparse(sparse.gaps, sparse.values, out))
          << size << " bytes, one in " << apart;
      ASSERT_EQ(out, in);
    }
  }
}

TEST(Sparse, RefusesValuesBehindTheEnd) {
  ByteVector out(300);
  EXPECT_TRUE(from_sparse(bytes({255, 44}), bytes({1}), out));
  EXPECT_FALSE(from_sparse(bytes({255, 45}), bytes({1}), out));
  EXPECT_FALSE(from_sparse(bytes({255, 255}), {}, out));
}

TEST(Sparse, RefusesMoreOrFewerValuesThanPlaces) {
  ByteVector out(300);
  EXPECT_FALSE(from_sparse(bytes({1, 1}), bytes({1}), out));
  EXPECT_FALSE(from_sparse(bytes({1}), bytes({1, 1}), out));
}

TEST(PackedRuns, OfBytesThatAreNearlyAllZeroTakeLittle) {
  const ByteVector in = mostly_zeros(32768, 100);
  ByteVector packed(in.size()), back(in.size());
  Output output(packed);
  Packer().pack_entropy(in, output);
  EXPECT_LT(output.size(), in.size() * 14 / 100 / 8);  // the entropy is 0.1 bits
  ByteView rest = ByteView(packed).first(output.size());
  ASSERT_TRUE(Unpacker().unpack(rest, back));
  EXPECT_TRUE(rest.empty());
  EXPECT_EQ(back, in);
}

TEST(PackedRuns, AreNotSparseWithinSparseOnes) {
  // The run has 28 bytes and is sparse: its gaps and values are empty runs that are sparse
  // themselves.
  const ByteVector inner = bytes({16, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  ByteVector run = bytes({28, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0, 0});
  run.insert(run.end(), inner.begin(), inner.end());
  ByteVector out(8);
  ByteView rest = run;
  const Status status = Unpacker().unpack(rest, out);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::corrupt);
}

}  // namespace
}  // namespace diapause::codec
