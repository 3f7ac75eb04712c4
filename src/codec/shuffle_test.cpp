#include "codec/shuffle.hpp"

#include <gtest/gtest.h>

#include <random>

namespace diapause::codec {
namespace {

ByteVector random_bytes(std::size_t size) {
  std::mt19937 random(static_cast<std::uint32_t>(size));
  ByteVector bytes(size);
  for (std::byte& value : bytes) value = static_cast<std::byte>(random());
  return bytes;
}

TEST(Shuffle, PutsEqualBytesOfAllElementsTogether) {
  for (const std::size_t width : {2, 4, 8}) {
    for (std::size_t count = 1; count < 100; ++count) {
      const ByteVector in = random_bytes(width * count);
      ByteVector out(in.size());
      shuffle(in, width, out);
      for (std::size_t i = 0; i < in.size(); ++i)
        ASSERT_EQ(out[i % width * count + i / width], in[i]) << width << count;
    }
  }
}

TEST(Shuffle, IsUndone) {
  for (const std::size_t width : {1, 2, 4, 8}) {
    for (std::size_t count = 0; count < 100; ++count) {
      const ByteVector in = random_bytes(width * count);
      ByteVector planes(in.size()), out(in.size());
      shuffle(in, width, planes);
      unshuffle(planes, width, out);
      ASSERT_EQ(out, in) << width << " x " << count;
    }
  }
}

}  // namespace
}  // namespace diapause::codec
